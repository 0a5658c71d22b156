"""Growth: what stores hold, by class, purpose and status; nothing is foretold early."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import interrupt
from qdrant_client import QdrantClient, models

from mnemoscope.memory import Mnemoscope, context, load_settings
from mnemoscope.memory.api import Faults
from mnemoscope.memory.growth.forecast import SizeHistory, SizeSample, bytes_a_day, days_to_full
from mnemoscope.memory.growth.sampler import GrowthSampler
from tests.kit.command_line import run
from tests.kit.patience import GIVE_UP_S

DAY_S = 86_400.0


@pytest.fixture
def make_scope(monkeypatch, tmp_path):
    """Return a function that makes a scope with a trail in a file; close them at the end."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    made = []

    def make(**settings):
        chosen = load_settings(
            sinks="audit",
            audit_url=f"sqlite:///{tmp_path}/audit.db",
            audit_pseudonym_key="ab" * 32,
            pii_model="none",
            **settings,
        )
        made.append(Mnemoscope(chosen))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def scope(make_scope):
    """Return a scope."""
    return make_scope()


@pytest.fixture
def growth(scope, monkeypatch, capsys):
    """Return a function that measures by the command, and returns the exit code and the stores."""
    monkeypatch.setattr("mnemoscope.adapters.cli.scope.scope_at", lambda _address: scope)

    def measured():
        assert scope.flush(timeout_s=GIVE_UP_S)
        code = run(["memory", "growth", "--scope", "app:scope", "--json"])
        return code, json.loads(capsys.readouterr().out)["stores"]

    return measured


def lines_of(stores):
    """Return what was measured, by store, class, purpose and status."""
    return {
        (each["store"], line["class"], line["purpose"], line["status"]): line
        for each in stores
        for line in each["lines"]
    }


def test_points_are_counted_by_their_sealed_purpose(scope, growth):
    """The purpose is that of the write's context, as the audit trail sealed it."""
    client = scope.qdrant(QdrantClient(":memory:"), owner_key="user_id")
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    client.create_collection("notes", vectors_config=size)
    for number in range(6):
        point = models.PointStruct(id=number, vector=[0.1, 0.2], payload={"user_id": "c-1"})
        with context(purpose="support" if number < 4 else None):
            client.upsert("notes", [point], wait=True)

    code, stores = growth()

    support = lines_of(stores)["qdrant", "point", "support", None]
    unknown = lines_of(stores)["qdrant", "point", "unknown", None]
    assert (code, support["rows"], unknown["rows"]) == (0, 4, 2)
    assert support["bytes"] == 2 * unknown["bytes"] > 0


def test_items_are_counted_with_their_bytes(scope, growth):
    """Of a store in memory they are read, up to a bound."""
    store = scope.store(InMemoryStore(), customer_at=1)
    store.put(("notes", "c-1"), "a", {"text": "tea"})

    (line,) = lines_of(growth()[1]).values()

    assert (line["class"], line["rows"], line["bytes"]) == ("item", 1, len('{"text":"tea"}'))


def graph_of(saver):
    """Return a graph that asks, if it is told to."""

    def ask(state):
        return {"said": interrupt("what?") if state["asks"] else "nothing"}

    builder = StateGraph(dict[str, object])
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


def test_threads_are_counted_by_status(scope, growth, tmp_path):
    """One that waits for an answer is no finished one."""
    with closing(sqlite3.connect(tmp_path / "s.db", check_same_thread=False)) as connection:
        graph = graph_of(scope.checkpointer(SqliteSaver(connection)))
        for number in range(3):
            config = {"configurable": {"thread_id": f"t-{number}"}}
            graph.invoke({"asks": number == 0}, config)

        lines = lines_of(growth()[1])

    status = {key[3]: line["rows"] for key, line in lines.items() if key[1] == "thread"}
    assert status == {"interrupted": 1, "done": 2}
    assert lines["langgraph.checkpoint", "checkpoint", "unknown", None]["rows"] >= 6
    assert lines["langgraph.checkpoint", "write", "unknown", None]["bytes"] > 0


def test_a_store_that_cannot_be_measured_says_so(scope, growth):
    """The others are measured all the same."""
    broken = scope.qdrant(QdrantClient(":memory:"), owner_key="user_id")
    store = scope.store(InMemoryStore(), customer_at=1)
    broken.close()
    store.put(("notes", "c-1"), "a", {"text": "tea"})

    code, stores = growth()

    assert code == 3
    assert {each["store"]: each["problem"] for each in stores} == {
        "qdrant": "measuring it raised RuntimeError",
        "langgraph.store": None,
    }


def test_nothing_is_foretold_before_there_are_enough_samples():
    """Neither of few samples, nor of many in an hour, nor of a store that shrinks."""
    days = [SizeSample(number * DAY_S, number * 100.0) for number in range(10)]
    hours = [SizeSample(number * 60.0, number * 100.0) for number in range(50)]

    assert bytes_a_day(days[:7]) is None
    assert bytes_a_day(hours) is None
    assert bytes_a_day(days) == pytest.approx(100.0)
    assert days_to_full(days, 1_000) == pytest.approx(10.0)
    assert days_to_full(days, None) is None
    assert days_to_full([each._replace(bytes=-each.bytes) for each in days], 1_000) is None


def test_the_history_outlives_the_process_and_stays_small(tmp_path):
    """It is thinned, its newest samples are whole, and a clock that went back takes some away."""
    history = SizeHistory(tmp_path / "growth.json")
    for number in range(900):
        history.add({"qdrant": SizeSample(float(number), 1.0)})

    kept = SizeHistory(tmp_path / "growth.json").read()["qdrant"]
    assert len(kept) <= 400
    assert [each.at_s for each in kept[-200:]] == [float(number) for number in range(700, 900)]
    assert history.add({"qdrant": SizeSample(50.0, 1.0)})["qdrant"][-1] == SizeSample(50.0, 1.0)
    (tmp_path / "growth.json").write_text("[broken")
    assert history.read() == {}


def test_one_process_of_a_machine_measures(scope, tmp_path):
    """The other shows nothing meanwhile: the same records would be told twice."""
    store = scope.store(InMemoryStore(), customer_at=1)
    store.put(("notes", "c-1"), "a", {"text": "tea"})

    def sampler(stores):
        return GrowthSampler(
            stores,
            None,
            limits={"langgraph.store": 100},
            path=tmp_path / "growth.json",
            every_s=60.0,
            faults=Faults(),
        )

    def while_another_one_does():
        other.sample()
        return scope.subject_data.named()

    one, other = sampler(while_another_one_does), sampler(scope.subject_data.named)
    one.sample()

    assert [len(each.latest) for each in (one, other)] == [1, 0]
    assert one.latest[0].room_bytes == 100 - len('{"text":"tea"}')
    assert one.days == {"langgraph.store": None}


def test_the_thread_shows_gauges_and_ends_with_the_scope(make_scope, eventually):
    """It measures every so often, where the setting says so."""
    scope = make_scope(growth_every_s=0.01, growth_limits={"langgraph.store": 1_000})
    store = scope.store(InMemoryStore(), customer_at=1)
    store.put(("notes", "c-1"), "a", {"text": "tea"})
    feature = next(each for each in scope._parts.features if "growth" in each.checks)

    # It may have measured before there was anything.

    def rows_of():
        return [each for each in feature.samples() if each.name == "mnemoscope_store_rows"]

    assert eventually(lambda: any(each.value for each in rows_of()))

    (rows,) = rows_of()
    labels = {"store": "langgraph.store", "class": "item", "purpose": "unknown", "status": ""}
    assert (rows.value, rows.labels) == (1, labels)
    (check,) = [each for each in scope.health().checks if each.name == "growth"]
    assert check.detail.startswith("1 records")
    scope.close()
    running = "mnemoscope-growth"
    assert eventually(lambda: running not in {each.name for each in threading.enumerate()})


def test_a_scope_measures_nothing_unless_it_is_told_to(scope):
    """Its check says which setting would."""
    (check,) = [each for each in scope.health().checks if each.name == "growth"]

    assert (check.state, "MNEMOSCOPE_GROWTH_EVERY_S" in check.detail) == ("off", True)


def test_the_command_prints_a_table(scope, growth, capsys, monkeypatch):
    """Which fits a terminal of 80 columns; without a scope it says what is missing."""
    monkeypatch.setenv("COLUMNS", "80")
    store = scope.store(InMemoryStore(), customer_at=1)
    store.put(("notes", "c-1"), "a", {"text": "tea"})
    assert growth()[1][0]["days_to_full"] is None

    assert run(["memory", "growth", "--scope", "app:scope"]) == 0
    shown = capsys.readouterr().out
    assert "langgraph.store" in shown
    assert "unknown" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert run(["memory", "growth"]) == 4
