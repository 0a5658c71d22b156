"""Checkpointers that answer for a database that is away, and what they may not make up."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from typing import TypedDict

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from mnemoscope.adapters.langgraph.checkpoint import overlay as langgraph_overlay
from mnemoscope.adapters.langgraph.checkpoint.adapter import ADAPTER, METHODS
from mnemoscope.adapters.langgraph.checkpoint.degraded import DegradedCheckpoints
from mnemoscope.adapters.langgraph.checkpoint.followed import PendingWrite
from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory import ConfigurationError, StoreUnavailableError, load_settings
from mnemoscope.memory import State as HealthState
from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.memory.health.checks import examine
from mnemoscope.telemetry.event.event import Journalled
from tests.kit.bench import wrapping
from tests.kit.patience import GIVE_UP_S
from tests.kit.unplugged_savers import MAIL, Memory, approving, pluggable, thread

guarded = wrapping(ADAPTER)


def back(saver, plug, eventually):
    """Plug the database in, and tell whether it was given all that waited."""
    plug.out, plug.pulled_at = False, 0
    return eventually(lambda: guard_of(saver).waits == 0)


def checked(bench):
    """Return what health says of the checkpointer."""
    health = examine(load_settings(), bench.parts.guards, 2.0)
    return next(each for each in health.checks if each.name == "store.langgraph.checkpoint")


async def aback(saver, plug):
    plug.out, plug.pulled_at = False, 0
    async with asyncio.timeout(GIVE_UP_S):
        while guard_of(saver).waits:  # noqa: ASYNC110 - a task of the guard's ends it
            await asyncio.sleep(0.005)


EXPECTED_RUN = ["before", "prepare", "ask", "ask", "after"]


def run_with_pull(saver, plug, at, durability="async"):
    """Run up to the interrupt, with the plug pulled at write number *at*, and then to the end."""
    graph, ran = approving(saver)
    plug.pulled_at = at
    asked = graph.invoke({"notes": ["hello"]}, thread(), durability=durability)
    pulled_before_approval = plug.out
    try:
        done = graph.invoke(Command(resume="yes"), thread(), durability=durability)
    except ConnectionError:
        # Pulled in the instant between the resuming run's first reads: it raised, and ran nothing.
        done = graph.invoke(Command(resume="yes"), thread(), durability=durability)
    return asked, done, ran, pulled_before_approval


@pytest.fixture
def healthy():
    """Return what a run without trouble leaves behind."""
    bare = Memory()
    asked, done, ran, _ = run_with_pull(bare, bare.plug, 0)
    assert ran == EXPECTED_RUN
    return asked["__interrupt__"], done, bare


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_survives_a_database_that_dies_at_any_write(
    degraded, healthy, eventually, durability
):
    """Whichever write is the first to fail, the run is interrupted, approved and resumed once."""
    _interrupt, expected, _bare = healthy
    writes = 20
    for at in range(1, writes):
        bare = Memory()
        saver = degraded(bare)
        asked, done, ran, _pulled = run_with_pull(saver, bare.plug, at, durability)
        came_back = back(saver, bare.plug, eventually)
        graph, _ = approving(bare)
        stored = graph.get_state(thread())

        assert asked["__interrupt__"][0].value == "send it?", at
        assert done["notes"][-2:] == ["answered yes", f"after for {MAIL}"], at
        assert ran == EXPECTED_RUN, at
        assert came_back, at
        assert len(stored.values["notes"]) == len(expected["notes"]), at
        assert stored.next == (), at


def test_all_channels_are_there_afterwards(degraded, eventually):
    """A channel that was written in the outage, and never again, is not missing from the saver."""

    class Two(TypedDict):
        x: list[str]
        y: str

    bare = Memory()
    saver = degraded(bare)
    builder = StateGraph(Two)
    builder.add_node("first", lambda _: bare.plug.__setattr__("out", True) or {"x": ["important"]})
    builder.add_node("second", lambda _: bare.plug.__setattr__("out", False) or {"y": "2"})
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"x": [], "y": "1"}, thread(), durability="sync")
    came_back = back(saver, bare.plug, eventually)

    assert came_back
    assert builder.compile(checkpointer=bare).get_state(thread()).values == {
        "x": ["important"],
        "y": "2",
    }


def test_says_so(degraded, events, eventually):
    """Each write that waits is degraded and in the journal, each that is made again is replayed."""
    bare = Memory()
    saver = degraded(bare)
    run_with_pull(saver, bare.plug, 5)
    back(saver, bare.plug, eventually)
    writes = [each for each in events() if each.op_class is OperationClass.CHECKPOINT]
    waited = [each for each in writes if each.journal is Journalled.APPENDED]
    again = [each for each in writes if each.journal is Journalled.REPLAYED]
    reads = [each for each in events() if each.op_class is OperationClass.RESUME and each.neutral]

    assert len(waited) == len(again) > 5
    assert {
        (each.neutral, each.status in {Status.DEGRADED, Status.REJECTED}) for each in waited
    } == {(True, True)}
    assert {each.status for each in again} == {Status.OK}
    assert {each.run for each in waited} == {each.run for each in again} == {"t-1"}
    assert reads


def test_health_counts_what_waits(degraded, patient, eventually):
    """Whoever looks sees that writes are in this process alone, until the saver has them."""
    bare = Memory()
    saver = degraded(bare)
    run_with_pull(saver, bare.plug, 5)
    waits = guard_of(saver).waits
    meanwhile = checked(patient)
    back(saver, bare.plug, eventually)
    afterwards = checked(patient)

    assert waits > 0
    assert meanwhile.state is HealthState.WARNING
    assert f"{waits} writes wait in this process" in meanwhile.detail
    assert afterwards.state is HealthState.OK


def test_what_waits_is_redacted(degraded, eventually):
    """As what is stored at once: the saver never sees the address."""
    bare = Memory()
    saver = degraded(bare)
    run_with_pull(saver, bare.plug, 3)
    came_back = back(saver, bare.plug, eventually)
    stored = repr([each.checkpoint for each in bare.list(thread())])

    assert came_back
    assert "<EMAIL_ADDRESS>" in stored
    assert MAIL not in stored


def test_an_unknown_thread_raises(degraded):
    """A thread that this process has not begun may have a past, which nobody may deny it."""
    bare = Memory()
    saver = degraded(bare)
    bare.plug.out = True
    graph, ran = approving(saver)
    with pytest.raises(ConnectionError):
        graph.invoke({"notes": ["hello"]}, thread())

    assert ran == []


def test_a_thread_that_waits_for_nothing_raises(degraded):
    """Another process may have gone on with it."""
    bare = Memory()
    saver = degraded(bare)
    graph, _ran = approving(saver)
    graph.invoke({"notes": ["hello"]}, thread())
    bare.plug.out = True
    with pytest.raises(ConnectionError):
        graph.invoke(Command(resume="yes"), thread())


def test_a_subgraph_that_may_have_a_past_raises(degraded):
    """Its checkpoint was read, not made, here: another process may have run it."""
    bare = Memory()
    first, _ran = approving(bare)
    first.invoke({"notes": ["hello"]}, thread())
    saver = degraded(bare)
    graph, ran = approving(saver)
    reads = iter([False, True])
    reach = bare.plug.reach

    def reach_once(*, writes=False):
        if not writes:
            bare.plug.out = next(reads)
        reach(writes=writes)

    bare.plug.reach = reach_once
    with pytest.raises(ConnectionError):
        graph.invoke(Command(resume="yes"), thread())

    assert ran == []


def test_other_threads_are_not_held_up(degraded):
    """One waits; the saver has recovered for the next."""
    bare = Memory()
    saver = degraded(bare)
    guard_of(saver)._not_before = float("inf")
    graph, _ran = approving(saver)
    bare.plug.pulled_at = 4
    graph.invoke({"notes": ["hello"]}, thread())
    bare.plug.out = False
    graph.invoke({"notes": ["hello"]}, thread("t-2"))

    assert graph.get_state(thread("t-2")).next == ("child",)
    assert bare.get_tuple(thread("t-2")) is not None
    guard_of(saver)._not_before = 0.0


def test_the_graph_cannot_change_what_waits(patient, eventually):
    """State that a node changes in place afterwards is stored as it was."""
    bare = Memory()
    saver = guarded(bare, patient, degraded=True, redact=False)
    live = ["first"]
    checkpoint = {**empty_checkpoint(), "channel_values": {"notes": live}, "id": "1"}
    checkpoint["channel_versions"] = {"notes": 1}
    bare.plug.out = True
    config = saver.put(
        {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}, checkpoint, {}, {"notes": 1}
    )
    live.append("later")
    read = saver.get_tuple(config).checkpoint["channel_values"]["notes"]
    read.append("by a reader")
    again = saver.get_tuple(config).checkpoint["channel_values"]["notes"]
    back(saver, bare.plug, eventually)

    assert again == ["first"]
    assert bare.get_tuple(config).checkpoint["channel_values"]["notes"] == ["first"]


@pytest.mark.parametrize("order", ["before", "after", "long after"])
def test_writes_are_given_up_with_their_step(monkeypatch, order):
    """A graph saves them on other threads: they may come before their step, or late."""
    monkeypatch.setattr(langgraph_overlay, "WAITING_OF_ONE", 6)
    overlay, most = langgraph_overlay.Overlay(), 0

    def keep(method, arguments):
        overlay.keep(PendingWrite(METHODS[method], arguments, guard=None))

    def keep_writes(step):
        config = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": step}}
        keep("put_writes", {"config": config, "writes": [("n", 1)], "task_id": step})

    for number in range(40):
        step = f"{number:02}"
        if order == "before":
            keep_writes(step)
        checkpoint = {**empty_checkpoint(), "id": step}
        config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        put = {"config": config, "checkpoint": checkpoint, "metadata": {}, "new_versions": {}}
        keep("put", put)
        if order == "after":
            keep_writes(step)
        elif order == "long after" and number >= 20:
            keep_writes(f"{number - 20:02}")
        most = max(most, overlay.waits)

    assert most <= 7


def test_a_long_outage_is_bounded(degraded, events, eventually, monkeypatch):
    """Steps that were superseded are given up; the latest has every channel all the same."""
    monkeypatch.setattr(langgraph_overlay, "WAITING_OF_ONE", 6)
    bare = Memory()
    saver = degraded(bare)

    class Many(TypedDict, total=False):
        turn: int
        once: str
        early: str

    builder = StateGraph(Many)
    builder.add_node("note", lambda state: {"early": "kept"} if state["turn"] == 1 else {})
    builder.add_edge(START, "note")
    graph = builder.compile(checkpointer=saver)
    bare.plug.pulled_at = 2
    most = 0
    for turn in range(20):
        graph.invoke({"turn": turn} | ({"once": "kept too"} if turn == 2 else {}), thread())
        most = max(most, guard_of(saver).waits)
    during = graph.get_state(thread()).values
    came_back = back(saver, bare.plug, eventually)
    after = builder.compile(checkpointer=bare).get_state(thread()).values

    fates = Counter(each.journal for each in events())

    assert most <= 6
    assert came_back
    assert fates[Journalled.APPENDED] == fates[Journalled.REPLAYED] + fates[Journalled.LOST]
    assert fates[Journalled.LOST] > 10
    assert during == after == {"turn": 19, "once": "kept too", "early": "kept"}


def test_when_too_much_waits_it_raises(degraded, monkeypatch):
    """The bound of all threads together holds; then the run fails as without the mode."""
    monkeypatch.setattr(langgraph_overlay, "WAITING", 3)
    bare = Memory()
    saver = degraded(bare)
    graph, _ran = approving(saver)
    bare.plug.pulled_at = 1
    with pytest.raises((ConnectionError, StoreUnavailableError)):
        graph.invoke({"notes": ["hello"]}, thread())

    assert guard_of(saver).waits == 3
    bare.plug.out = False


def test_a_write_that_is_never_taken_is_lost_and_made_up_for(degraded, events, eventually):
    """It is counted, what waits behind it goes on, and the next step carries its channels."""
    bare = Memory()
    saver = degraded(bare)
    run_with_pull(saver, bare.plug, 5)
    put, refused = bare.put, []

    def refuse_once(*args, **kwargs):
        if not bare.plug.out and not refused:
            refused.append(1)
            raise TypeError("cannot be stored")
        return put(*args, **kwargs)

    bare.put = refuse_once
    came_back = back(saver, bare.plug, eventually)
    stored = approving(bare)[0].get_state(thread())
    lost = [each for each in events() if each.journal is Journalled.LOST]

    assert came_back
    assert refused == [1]
    assert [each.error for each in lost] == ["TypeError"]
    assert stored.values["notes"][-2] == "answered yes"


async def test_in_a_loop(degraded, tmp_path):
    """As in threads: the asynchronous saver is given what waits by a task on its loop."""
    kind = pluggable(AsyncSqliteSaver)
    for at in range(1, 20):
        async with kind.from_conn_string(str(tmp_path / f"{at}.db")) as bare:
            saver = degraded(bare)
            graph, ran = approving(saver)
            await bare.setup()
            bare.plug.pulled_at = at
            await graph.ainvoke({"notes": ["hello"]}, thread())
            done = await graph.ainvoke(Command(resume="yes"), thread())
            await aback(saver, bare.plug)
            stored = await approving(bare)[0].aget_state(thread())

        assert done["notes"][-2] == "answered yes"
        assert ran == EXPECTED_RUN, at
        assert stored.values["notes"][-2] == "answered yes"


def test_with_a_file(degraded, tmp_path, eventually):
    """SqliteSaver, whose rows hold whole checkpoints."""
    with pluggable(SqliteSaver).from_conn_string(str(tmp_path / "threads.db")) as bare:
        saver = degraded(bare)
        _asked, _done, ran, _ = run_with_pull(saver, bare.plug, 5)
        came_back = back(saver, bare.plug, eventually)
        stored = approving(bare)[0].get_state(thread())

    assert came_back
    assert ran == EXPECTED_RUN
    assert stored.values["notes"][-2] == "answered yes"


def test_a_saver_bound_to_its_thread_is_refused(patient):
    """Nobody could give it what waits."""
    connection = sqlite3.connect(":memory:")
    with pytest.raises(ConfigurationError, match="bound to its thread"):
        guarded(SqliteSaver(connection), patient, degraded=True)
    connection.close()


def test_threads_are_followed_within_bounds(degraded, monkeypatch):
    """The memory for what may never be needed is bounded."""
    monkeypatch.setattr(langgraph_overlay, "FOLLOWED", 3)
    saver = degraded(Memory())
    graph, _ran = approving(saver)
    for number in range(10):
        graph.invoke({"notes": ["hello"]}, thread(f"t-{number}"))
    (waiting,) = (step for step in guard_of(saver).steps if isinstance(step, DegradedCheckpoints))
    overlay = waiting._overlay

    assert list(overlay._threads) == ["t-7", "t-8", "t-9"]
    assert all(
        len(place) == 1 for each in overlay._threads.values() for place in each.places.values()
    )
