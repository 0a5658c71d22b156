"""Faults 53 and 54 with a real database: killed, started again, locked."""

from __future__ import annotations

import operator
import time
from typing import Annotated, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory import DeadlineExceededError
from mnemoscope.memory.api import OperationClass

psycopg = pytest.importorskip("psycopg")
postgres_store = pytest.importorskip("langgraph.store.postgres")
postgres_saver = pytest.importorskip("langgraph.checkpoint.postgres")


class State(TypedDict):
    notes: Annotated[list[str], operator.add]


@pytest.fixture
def approving():
    """Return a function that builds a graph which asks in a subgraph, and what ran in it."""

    def build(saver, in_the_middle=lambda: None):
        ran = []

        def step(name, then=lambda: None):
            def run(_state):
                ran.append(name)
                then()
                return {"notes": [name]}

            return run

        def ask(_state):
            return {"notes": [f"answered {interrupt('send it?')}"]}

        inner = StateGraph(State)
        inner.add_sequence([("prepare", step("prepare")), ("ask", ask)])
        inner.add_edge(START, "prepare")
        outer = StateGraph(State)
        outer.add_sequence(
            [
                ("before", step("before", in_the_middle)),
                ("child", inner.compile()),
                ("after", step("after")),
            ]
        )
        outer.add_edge(START, "before")
        return outer.compile(checkpointer=saver), ran

    return build


THREAD = {"configurable": {"thread_id": "t-1"}}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.fault(
    53,
    "PostgreSQL killed in the middle of a run",
    expected="interrupt, approval, resume; all stored",
)
def test_database_restart(
    postgres, postgres_pool, make_scope, approving, eventually, seen, durability
):
    """A run goes on through the death and the return of its database, and nothing runs twice."""
    bare = postgres_saver.PostgresSaver(postgres_pool)
    bare.setup()
    scope = make_scope()
    saver = scope.checkpointer(bare, degraded=True)
    graph, ran = approving(saver, in_the_middle=postgres.kill)
    asked = graph.invoke({"notes": ["hello"]}, THREAD, durability=durability)
    waited = guard_of(saver).waits
    # Approved while it is away, resumed as it comes back.
    postgres.start()
    done = graph.invoke(Command(resume="yes"), THREAD, durability=durability)
    given = eventually(lambda: guard_of(saver).waits == 0)
    stored = approving(bare)[0].get_state(THREAD)
    seen(f"{durability}: {waited} writes waited and were made again")

    assert asked["__interrupt__"][0].value == "send it?"
    assert ran == ["before", "prepare", "after"]
    assert done["notes"][-2:] == ["answered yes", "after"]
    assert given
    assert stored.values == done
    assert stored.next == ()


@pytest.mark.fault(53, "PostgreSQL killed under the store", expected="neutral; back by itself")
def test_store_restart(
    postgres, postgres_pool, postgres_url, tmp_path, make_scope, eventually, seen
):
    """Reads are empty and say so, writes wait in the journal, and all is there when it is back."""
    bare = postgres_store.PostgresStore(postgres_pool)
    bare.setup()
    scope = make_scope(journal=tmp_path / "journal")
    store = scope.store(bare)
    store.put(("notes",), "before", {"text": "tea"})
    postgres.kill()
    found = store.search(("notes",))
    event = scope.last_outcome()
    for number in range(5):
        store.put(("notes",), f"during-{number}", {"text": "coffee"})
    postgres.start()

    def stored() -> int:
        # On a connection of its own: the pool has not noticed yet.
        with psycopg.connect(postgres_url) as connection:
            count = "select count(*) from store where prefix = 'notes'"
            return connection.execute(count).fetchone()[0]

    came_back = eventually(lambda: stored() == 6)
    seen("5 writes waited and were made again")

    assert found == []
    assert event.neutral
    assert came_back


@pytest.mark.fault(
    54, "PostgreSQL: a locked table, no timeout of its own", expected="the deadline ends the wait"
)
@pytest.mark.parametrize("has_threads", [False, True], ids=["cancelled", "by a thread"])
def test_locked(postgres_pool, make_scope, eventually, seen, has_threads):
    """A recall gives up at its deadline, a resume raises; what a thread still waits for is late."""
    saver = postgres_saver.PostgresSaver(postgres_pool)
    store = postgres_store.PostgresStore(postgres_pool)
    saver.setup()
    store.setup()
    waits = {"deadline_recall_s": 0.3, "deadline_resume_s": 0.3}
    scope = make_scope(deadline_threads=has_threads, **waits)
    assert scope.prepare()  # else the recall may be over before it has come to the store
    guarded, graphs = scope.store(store), scope.checkpointer(saver)
    with postgres_pool.connection() as locking, locking.transaction():
        locking.execute("lock table store, checkpoints in access exclusive mode")
        started = time.monotonic()
        found = guarded.get(("notes",), "k")
        with pytest.raises(DeadlineExceededError):
            graphs.get_tuple(THREAD)
        took = time.monotonic() - started
        inside = [
            guard_of(guarded).limits[OperationClass.RECALL].bulkhead.in_flight,
            guard_of(graphs).limits[OperationClass.RESUME].bulkhead.in_flight,
        ]
    guards = [guard_of(guarded), guard_of(graphs)]
    left = 2 if has_threads else 0
    late = eventually(lambda: sum(each.deadline.late_results for each in guards) == left)
    seen(f"both over after {took:.1f} s")

    assert found is None
    assert sum(inside) == left
    assert late
    assert took < 5
