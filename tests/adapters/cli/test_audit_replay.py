"""``mnemoscope audit replay``: the routes of recorded runs, held against a graph or other runs."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from mnemoscope.memory import Facts, Mnemoscope, Point, Stopping, context, load_settings
from tests.kit.command_line import run
from tests.kit.graph_shapes import SHAPES, Rolled, play
from tests.kit.patience import GIVE_UP_S
from tests.kit.tampering import silenced

SEED = 3
"""Of a run of `loop` that thinks three times."""

THREAD = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def scope(monkeypatch, tmp_path):
    """Return a scope with an audit trail, which the command finds by the environment."""
    for name in list(os.environ):
        if name.startswith("MNEMOSCOPE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", "ab" * 32)
    made = Mnemoscope(load_settings(sinks="audit", pii_model="none"))
    yield made
    made.close()


@pytest.fixture
def app(scope, monkeypatch):
    """Return a module that the command finds, with a graph whose runs are recorded."""
    module = type(sys)("replayed_app")
    module.saver = scope.checkpointer(InMemorySaver())
    module.graph = scope.runnable(SHAPES["loop"](0).compile(checkpointer=module.saver))
    module.changed = lambda: SHAPES["loop"](2).compile(checkpointer=module.saver)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.fixture
def replay(scope, capfd):
    """Return a function that runs the command, and returns its code and what it prints."""

    def replayed(*arguments):
        scope.flush(timeout_s=GIVE_UP_S)
        code = run(["audit", "replay", *arguments])
        printed = capfd.readouterr()
        return code, printed.out + printed.err

    return replayed


def test_the_route_of_a_run_is_shown(app, replay):
    """By superstep, at 80 columns."""
    play(app.graph, "t", SEED)
    code, shown = replay("--run", "t")

    assert code == 0
    assert shown.splitlines()[:4] == [" run t", "      1  think", "      2  act", "      3  think"]


def test_a_line_is_one_in_a_pipe(app, replay):
    """However long: a script reads it."""
    play(app.graph, "a long name " * 10, SEED)
    _code, shown = replay("--run", "a long name " * 10)

    assert shown.splitlines()[0].rstrip() == f" run {'a long name ' * 10}".rstrip()


def test_a_run_is_held_against_the_graph_that_it_is_of(app, replay):
    """Its edges and its routers say the same again."""
    play(app.graph, "t", SEED)
    code, shown = replay("--run", "t", "--graph", "replayed_app:graph")

    assert code == 0
    assert " ok           graph   its edges allow all " in shown
    assert " ok           router  " in shown


def test_the_first_step_that_differs_is_named(app, replay):
    """With what follows instead; the command ends with 1."""
    play(app.graph, "t", SEED)
    code, shown = replay("--run", "t", "--graph", "replayed_app:changed")

    assert code == 1
    assert "differs      router  step 4: think → answer, where act follows" in shown


def test_json_has_the_route_and_what_differs(app, replay):
    """With the events of each superstep."""
    play(app.graph, "t", SEED)
    code, printed = replay("--run", "t", "--graph", "replayed_app:changed", "--json")
    (found,) = json.loads(printed)

    assert code == 1
    assert (found["run"], found["tenant"]) == ("t", None)
    assert [each["nodes"] for each in found["route"]][:2] == [["think"], ["act"]]
    (finding,) = found["findings"]
    assert (finding["check"], finding["answer"], finding["at"]["step"]) == ("router", "differs", 4)
    assert finding["at"]["seqs"]


def test_decisions_that_cannot_be_made_again_are_said(scope, app, replay):
    """A graph without a checkpointer has no states: 3, and never ok."""
    app.bare = scope.runnable(SHAPES["loop"](0).compile())
    play(app.bare, "t", SEED)
    code, shown = replay("--run", "t", "--graph", "replayed_app:bare")

    assert code == 3
    assert "cannot tell  router" in shown
    assert "no state is recorded" in shown


def test_a_run_is_compared_with_another_one(app, replay):
    """The first superstep that differs is named."""
    play(app.graph, "t", SEED)
    play(app.graph, "same", SEED)
    play(app.graph, "other", SEED + 1)

    assert replay("--run", "t", "--compare", "same")[0] == 0
    code, shown = replay("--run", "t", "--compare", "other")
    assert code == 1
    assert "differs      route   step " in shown
    assert replay("--run", "t", "--compare", "nowhere")[0] == 3


def test_new_routes_of_the_last_runs_are_a_regression(app, replay):
    """Each new route is named once, with its run and step."""
    with context(feature="reply/draft"):
        for n in range(3):
            play(app.graph, f"old-{n}", SEED)
        play(app.graph, "new-1", SEED + 1)
        play(app.graph, "new-2", SEED + 1)
        play(app.graph, "old-3", SEED)
    code, shown = replay("--last", "3", "--feature", "reply")

    assert code == 1
    assert shown.count("differs") == 1
    assert shown.index(" run new-1") < shown.index("differs") < shown.index(" run new-2")
    assert replay("--last", "1", "--feature", "reply")[0] == 0
    assert replay("--last", "9", "--feature", "reply")[0] == 1
    assert replay("--last", "1", "--feature", "repl")[0] == 3


def test_the_last_runs_are_held_against_a_changed_graph(app, replay):
    """All of them, newest last."""
    for seed in range(4):
        play(app.graph, f"t-{seed}", seed)
    code, printed = replay("--last", "3", "--graph", "replayed_app:changed", "--json")

    assert code == 1
    assert [each["run"] for each in json.loads(printed)] == ["t-1", "t-2", "t-3"]


def test_one_agent_alone(scope, app, replay):
    """Nodes of other agents in the run do not count."""
    for name, agent in (("t", "writer"), ("t", "critic"), ("u", "writer")):
        with context(run=name, agent=agent):
            scope.runnable(SHAPES["branches"](0).compile()).invoke({"dice": [1], "log": []})

    assert replay("--run", "t", "--compare", "u")[0] == 1
    assert replay("--run", "t", "--compare", "u", "--agent", "writer")[0] == 0


def test_a_run_of_two_tenants_needs_its_tenant(scope, app, replay):
    """Their runs are not mixed."""
    for tenant in ("acme", "beta"):
        with context(tenant=tenant):
            play(app.graph, "t", SEED)

    assert replay("--run", "t")[0] == 5
    assert replay("--run", "t", "--tenant", "acme")[0] == 0


def test_a_run_that_nobody_recorded_is_said(app, replay):
    """And one of which no node is on record."""
    play(app.graph, "t", SEED)
    app.graph.get_state({"configurable": {"thread_id": "silent"}})

    code, shown = replay("--run", "nope")
    assert (code, "no such run is on record" in shown) == (3, True)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--run", "t", "--last", "3"),
        ("--last", "3", "--compare", "t"),
        ("--run", "t", "--budget", "euro=3"),
        ("--run", "t", "--budget", "usd=-1"),
        ("--run", "t", "--budget", "usd"),
        ("--run", "t", "--budget", "usd=nan"),
        ("--run", "t", "--graph", "replayed_app:nothing"),
        ("--run", "t", "--graph", "replayed_app:saver"),
    ],
)
def test_wrong_usage_is_one_line(app, replay, arguments):
    """And exits with 4."""
    play(app.graph, "t", SEED)
    code, shown = replay(*arguments)

    assert (code, len(shown.strip().splitlines())) == (4, 1)


class Audited:
    """A run with one model call, whose usage is known."""

    def __init__(self, scope, used):
        model = GenericFakeChatModel(
            messages=iter(
                [
                    AIMessage(
                        "hi",
                        usage_metadata=used,
                        response_metadata={"model_name": "gpt-4o-mini", "model_provider": "openai"},
                    )
                ]
            )
        )
        builder = StateGraph(Rolled)
        builder.add_node("a", lambda _: {"log": [model.invoke("hi").content]})
        builder.add_edge(START, "a")
        builder.add_edge("a", END)
        scope.runnable(builder.compile()).invoke({"log": []}, THREAD)


USED = {"input_tokens": 1000, "output_tokens": 500, "total_tokens": 1500}


@pytest.mark.parametrize(
    ("limit", "code", "answer"),
    [
        ("tokens=1500", 0, "ok           budget  1,500 of 1,500 tokens"),
        ("tokens=1499", 1, "differs      budget  1,500 of 1,499 tokens"),
        ("usd=1", 0, "ok           budget  0.00045 of 1 usd"),
        ("usd=0.0004", 1, "differs      budget  0.00045 of 0.0004 usd"),
        ("seconds=600", 0, "of 600 seconds"),
        ("seconds=0", 1, "differs      budget"),
    ],
)
def test_a_run_over_its_budget_is_found(scope, replay, limit, code, answer):
    """Tokens, cost and seconds as they were recorded."""
    Audited(scope, USED)
    found, shown = replay("--run", "t", "--budget", limit)

    assert (found, answer in shown) == (code, True)


def test_what_no_provider_reported_is_not_within_a_budget(scope, replay):
    """Tokens that nobody counted cannot be told, nor can their cost."""
    Audited(scope, None)

    for limit in ("tokens=100", "usd=1"):
        code, shown = replay("--run", "t", "--budget", limit)
        assert (code, "cannot tell  budget" in shown) == (3, True)


def test_the_same_decision_too_often_is_a_loop(app, replay):
    """More than so many times in one turn."""
    play(app.graph, "t", SEED)
    play(app.graph, "t", SEED)

    assert replay("--run", "t", "--loop", "2")[0] == 0
    code, shown = replay("--run", "t", "--loop", "1")
    assert code == 1
    assert "differs      loop    step 7: think → act, 2 times" in shown


def test_what_a_rule_stopped_is_shown(scope, app, replay):
    """As a loop or a budget, by its reason."""
    play(app.graph, "t", SEED)
    with context(run="t"):
        scope.tell_verdict(Stopping(), Facts(Point.MODEL, cost_usd=2.5))
        scope.tell_verdict(Stopping(shadow=True), Facts(Point.MODEL, repeats=7))
        scope.tell_verdict(Stopping(), Facts(Point.MODEL))
    code, shown = replay("--run", "t")

    assert code == 1
    assert "differs      budget  rule stopping: cost, event" in shown
    assert "differs      loop    rule stopping: cycle, event" in shown
    assert shown.count("rule stopping") == 2


def test_an_output_that_a_schema_refused_is_shown(scope, replay):
    """By the type of its error. Without one it cannot be told whether all fitted."""
    from pydantic import BaseModel

    class Answer(BaseModel):
        text: str

    builder = StateGraph(Rolled)
    builder.add_node("a", lambda _: {"log": [Answer.model_validate({"text": 7}).text]})
    builder.add_edge(START, "a")
    with pytest.raises(ValueError, match="valid string"):
        scope.runnable(builder.compile()).invoke({"log": []}, THREAD)
    scope.runnable(SHAPES["branches"](0).compile()).invoke(
        {"dice": [1], "log": []}, {"configurable": {"thread_id": "u"}}
    )

    code, shown = replay("--run", "t")
    assert code == 1
    assert "differs      schema  a was refused, event" in shown
    assert replay("--run", "u")[0] == 0
    code, shown = replay("--run", "u", "--schema")
    assert (code, "cannot tell  schema" in shown) == (3, True)


def test_steps_that_were_erased_cannot_be_told(scope, app, replay):
    """Those of the customer are gone: what follows is not said to differ."""
    play(app.graph, "t", SEED)
    play(app.graph, "whole", SEED)
    assert scope.flush(timeout_s=GIVE_UP_S)
    scope.close()
    with closing(sqlite3.connect("audit.db")) as database, silenced(database):
        (seq,) = database.execute(
            "SELECT e.seq FROM audit_event e WHERE operation = 'execute_node' "
            "AND method = 'act' ORDER BY seq LIMIT 1"
        ).fetchone()
        database.execute("DELETE FROM audit_detail WHERE seq = ?", (seq,))
        database.commit()
    code, shown = replay("--run", "t", "--graph", "replayed_app:graph")

    assert code == 3
    assert "cannot tell  route   step 3: what led to think is not on record" in shown
    assert "differs" not in shown
    code, shown = replay("--run", "t", "--compare", "whole")
    assert code == 3
    assert "cannot tell  route   step 3: think, where act was" in shown
    assert "differs" not in shown


def test_every_process_gives_the_same_answer(app, scope, replay, tmp_path):
    """Whatever its hashes of strings are."""
    app.graph = scope.runnable(SHAPES["sends"](0).compile(checkpointer=app.saver))
    play(app.graph, "t", SEED)
    play(app.graph, "u", SEED + 1)
    assert scope.flush(timeout_s=GIVE_UP_S)
    program = (
        "import sys; from mnemoscope.adapters.cli.root import run; "
        "run(['audit', 'replay', '--run', 't', '--against', 'u', '--json'])"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }

    assert len(answers) == 1
