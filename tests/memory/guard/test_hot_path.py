"""
What a guarded call costs, counted and not timed: noise cannot break it, a regression does.

Counted are the Python functions that a call enters and the instructions that they run, on the
caller's thread, once all caches are warm. Budgets are what was seen on Python 3.13, and a fiftieth;
a change that needs more says why it is worth it. `make bench` has the microseconds.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from threading import Event as Flag
from typing import Any

import pytest

from mnemoscope.memory import (
    Mnemoscope,
    Origin,
    Phase,
    Phases,
    Role,
    Roles,
    Rule,
    Stopping,
    Trust,
    context,
    load_settings,
)
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.delivery.drain import _EVENT_BYTES
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.call_costs import Cost, cost_of, counted_here
from tests.kit.patience import GIVE_UP_S

KEY = "ab" * 32


IMPORTED = {
    "mnemoscope.memory",
    "mnemoscope.memory.budgets",
    "mnemoscope.memory.budgets.budget",
    "mnemoscope.memory.context",
    "mnemoscope.memory.default_scope",
    "mnemoscope.memory.errors",
    "mnemoscope.memory.health",
    "mnemoscope.memory.health.model",
    "mnemoscope.memory.layers",
    "mnemoscope.memory.limits",
    "mnemoscope.memory.limits.policy",
    "mnemoscope.memory.scope",
    "mnemoscope.telemetry",
    "mnemoscope.telemetry.delivery",
    "mnemoscope.telemetry.delivery.sink",
    "mnemoscope.telemetry.event",
    "mnemoscope.telemetry.event.format",
    "mnemoscope.telemetry.event.kinds",
    "mnemoscope.telemetry.pricing",
    "mnemoscope.telemetry.pricing.model_names",
}
"""What ``import mnemoscope.memory`` may import of ours."""


class Named(CapturingSink):
    """One of five sinks."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


@pytest.fixture
def make_scope() -> Iterator[Callable[..., Mnemoscope]]:
    """Return a factory of scopes with five sinks; a deadline of 0 is none."""
    scopes: list[Mnemoscope] = []

    def make(deadline_s: float = 0.0, rules: Sequence[Rule] = ()) -> Mnemoscope:
        settings = load_settings(
            audit_pseudonym_key=KEY,
            pii_model="none",
            deadline_recall_s=deadline_s,
            deadline_remember_s=deadline_s,
        )
        sinks = [Named(f"sink-{number}") for number in range(5)]
        scope = Mnemoscope(settings, only_sinks=sinks, rules=rules)
        scopes.append(scope)
        return scope

    yield make
    for scope in scopes:
        scope.close()


def qdrant_query(scope: Mnemoscope, dims: int = 64) -> Callable[[], object]:
    """Return a query of a Qdrant whose answer costs nothing."""
    from qdrant_client import QdrantClient
    from qdrant_client.http import models

    point = models.ScoredPoint(id=7, version=1, score=0.9, payload={"n": 1})
    answer = models.QueryResponse(points=[point] * 3)
    client: Any = QdrantClient(":memory:")
    client.query_points = lambda collection_name, query, limit: answer
    guarded, vector = scope.qdrant(client), [0.5] * dims
    return lambda: guarded.query_points("facts", query=vector, limit=3)


def qdrant_upsert(scope: Mnemoscope) -> Callable[[], object]:
    """Return a write of one point to a Qdrant that takes it for nothing."""
    from qdrant_client import QdrantClient
    from qdrant_client.http import models

    client: Any = QdrantClient(":memory:")
    client.upsert = lambda collection_name, points: None
    guarded, payload = scope.qdrant(client), {"likes": "green tea", "since": 2019}
    points = [models.PointStruct(id=7, vector=[0.5] * 64, payload=payload)]
    return lambda: guarded.upsert("facts", points)


def mem0_search(scope: Mnemoscope) -> Callable[[], object]:
    """Return a search of a mem0 whose answer costs nothing."""
    from mem0 import Memory

    memory: Any = Memory.__new__(Memory)
    memory.search = lambda query, *, filters: {"results": []}
    guarded = scope.mem0(memory)
    return lambda: guarded.search("which tea does she like", filters={"user_id": "c-4711"})


def mem0_recall(scope: Mnemoscope) -> Callable[[], object]:
    """Return a search of a mem0 that answers with five memories for nothing."""
    from mem0 import Memory

    of = {"memory": "likes green tea", "score": 0.9, "user_id": "c-4711"}
    found = [{"id": f"00000000-0000-4000-8000-{number:012}", **of} for number in range(5)]
    memory: Any = Memory.__new__(Memory)
    memory.search = lambda query, *, filters: {"results": found}
    guarded = scope.mem0(memory)
    return lambda: guarded.search("which tea does she like", filters={"user_id": "c-4711"})


def store_get(scope: Mnemoscope) -> Callable[[], object]:
    """Return a read of LangGraph's store in memory."""
    from langgraph.store.memory import InMemoryStore

    guarded = scope.store(InMemoryStore())
    return lambda: guarded.get(("memories", "c-4711"), "taste")


def store_put(scope: Mnemoscope) -> Callable[[], object]:
    """Return a write to LangGraph's store in memory."""
    from langgraph.store.memory import InMemoryStore

    guarded = scope.store(InMemoryStore())
    return lambda: guarded.put(("memories", "c-4711"), "taste", {"likes": "green tea"})


def store_found(scope: Mnemoscope) -> Callable[[], object]:
    """Return a read of LangGraph's store in memory that finds something."""
    from langgraph.store.memory import InMemoryStore

    guarded = scope.store(InMemoryStore())
    guarded.put(("memories", "c-4711"), "taste", {"likes": "green tea"})
    return lambda: guarded.get(("memories", "c-4711"), "taste").value


def observed(scope: Mnemoscope) -> Callable[[], object]:
    """Return a function of the user's that is observed."""

    @scope.observe(store="crm", operation="search_memory", neutral=list)
    def facts() -> list[str]:
        return []

    return facts


def redacted(chars: int) -> Callable[[], object]:
    """Return the redaction of a clean text, another one each time."""
    redactor = build_redactor(model="none", keys=SubjectKeys(b"sixteen bytes or more"))
    words = ("likes", "tea", "with", "milk", "after", "lunch", "and", "before", "work", "rain")
    chosen = random.Random(chars)  # noqa: S311 - the same texts in every run
    texts = cycle([" ".join(chosen.choices(words, k=chars // 5)) for _ in range(9_000)])
    return lambda: redactor.begin().text(next(texts))


@counted_here
@pytest.mark.parametrize(
    ("call", "deadline_s", "budget"),
    [
        pytest.param(qdrant_query, 0.0, Cost(58, 1680), id="qdrant"),
        pytest.param(qdrant_query, 5.0, Cost(56, 1702), id="qdrant-deadline"),
        pytest.param(qdrant_upsert, 0.0, Cost(156, 3762), id="qdrant-upsert"),
        pytest.param(mem0_search, 0.0, Cost(60, 1920), id="mem0"),
        pytest.param(mem0_recall, 0.0, Cost(72, 2385), id="mem0-five-results"),
        pytest.param(store_get, 0.0, Cost(69, 1808), id="store"),
        pytest.param(observed, 0.0, Cost(38, 1051), id="observed"),
    ],
)
def test_a_guarded_call_stays_within_its_budget(make_scope, call, deadline_s, budget):
    """With five sinks, on the caller's thread."""
    cost = cost_of(call(make_scope(deadline_s)))

    assert cost.functions <= budget.functions
    assert cost.instructions <= budget.instructions


@counted_here
def test_a_long_vector_costs_no_more_than_a_short_one(make_scope):
    """Not one instruction: nothing looks at its numbers."""
    scope = make_scope()

    assert cost_of(qdrant_query(scope, 64)) == cost_of(qdrant_query(scope, 1_536))


@counted_here
def test_redacting_clean_text_stays_within_its_budget():
    """Whatever its length: what looks at characters is in C."""
    short, long = cost_of(redacted(100)), cost_of(redacted(1_000))

    assert short.instructions <= 1_100
    assert long.instructions <= 1_100


def test_an_event_weighs_no_more_than_the_queues_count_for_it(make_scope):
    """Else their bound in bytes would be none."""
    held = Flag()
    scope = make_scope()
    for sink in scope._parts.drain.sinks:
        sink.write = lambda _batch: held.wait(GIVE_UP_S)
    call = observed(scope)
    for _ in range(100):
        call()
    tracemalloc.start()
    try:
        before, _peak = tracemalloc.get_traced_memory()
        for _ in range(500):
            call()
        after, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        held.set()

    assert (after - before) / 500 <= _EVENT_BYTES


def test_importing_the_front_door_imports_next_to_nothing():
    """Of ours, what is named here; of others, nothing at all, and not asyncio."""
    script = """
import sys
before = set(sys.modules)
import mnemoscope.memory
loaded = {name for name in set(sys.modules) - before}
print(*sorted(name for name in loaded if name.startswith("mnemoscope.")))
print(*sorted({name.partition(".")[0] for name in loaded} - sys.stdlib_module_names))
print(*sorted(loaded & {"asyncio", "logging", "ssl", "decimal", "sqlite3"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )
    ours, others, heavy = done.stdout.splitlines()

    assert set(ours.split()) <= IMPORTED
    assert others.split() == ["mnemoscope"]
    assert heavy == ""


def test_configuring_imports_nothing_that_it_can_do_without():
    """A loop is for those who have one, and the environment is read without a library."""
    script = """
import sys
import mnemoscope.memory
mnemoscope.memory.configure(sinks="", audit_pseudonym_key="ab" * 32, pii_model="none")
print(*sorted(set(sys.modules) & {"asyncio", "pydantic_settings", "spacy", "presidio_analyzer"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )

    assert done.stdout.split() == []


@counted_here
@pytest.mark.parametrize("make", [qdrant_query, store_get])
def test_without_rules_a_call_runs_no_instruction_more(make_scope, make):
    """The step is not there, so that a scope that never heard of rules costs as much."""
    scope = make_scope()
    guards = scope._parts.guards

    make(scope)

    assert not any(
        type(step).__name__ == "AskRules" for each in guards.guards for step in each.steps
    )
    assert "mnemoscope.memory.rules.rulebook" not in _imported_by(
        "from mnemoscope.memory import Mnemoscope, load_settings\n"
        "Mnemoscope(load_settings(sinks='logs', pii_model='none', audit_pseudonym_key='ab' * 32))"
    )


RULES: dict[str, Callable[[], Rule]] = {
    "stopping": Stopping,
    "phases": lambda: Phases([Phase("research", seconds=5e5, usd=1e6)]),
    "roles": lambda: Roles({"a": Role(recall=("*",), remember=("*",), per_minute=10**9)}),
    "origin": lambda: Origin(demands={"payments": Trust.INTERNAL_TOOL}),
}


@counted_here
@pytest.mark.parametrize(
    ("names", "put", "get"),
    [
        pytest.param(["stopping"], Cost(6, 150), Cost(6, 151), id="stopping"),
        pytest.param(["phases"], Cost(13, 351), Cost(13, 352), id="phases"),
        pytest.param(["roles"], Cost(18, 479), Cost(18, 480), id="roles"),
        pytest.param(["origin"], Cost(20, 612), Cost(19, 468), id="origin"),
        pytest.param([*RULES], Cost(29, 892), Cost(33, 873), id="all"),
    ],
)
def test_rules_that_allow_a_call_stay_within_their_budget(make_scope, names, put, get):
    """What each costs more than a call without rules, and what they cost together."""
    scopes = make_scope(), make_scope(rules=[RULES[each]() for each in names])

    with context(run="r-1", agent="a"), Origin().reading(Trust.PERSON):
        for make, budget in ((store_put, put), (store_found, get)):
            without, with_rules = (cost_of(make(each)) for each in scopes)
            assert with_rules.functions - without.functions <= budget.functions
            assert with_rules.instructions - without.instructions <= budget.instructions


def _imported_by(code: str) -> str:
    """Return the names of what *code* imports, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
