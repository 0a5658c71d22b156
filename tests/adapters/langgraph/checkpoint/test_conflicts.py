"""Threads that somebody else changed while writes to them waited: ours are given up, loudly."""

from __future__ import annotations

import asyncio
import gc
import logging
from dataclasses import replace

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from mnemoscope.adapters.langgraph.checkpoint.adapter import ADAPTER
from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory import ConfigurationError, MnemoscopeError, load_settings
from mnemoscope.memory.health.checks import examine
from mnemoscope.memory.health.live_metrics import LiveMetrics
from mnemoscope.telemetry.event.event import Journalled
from tests.kit.bench import wrapping
from tests.kit.patience import GIVE_UP_S, until
from tests.kit.unplugged_savers import (
    Memory,
    approving,
    checkpoint,
    pluggable,
    put,
    somebody_else,
    steps,
    thread,
)

guarded = wrapping(ADAPTER)
CHANGED = (Journalled.LOST, "ThreadChangedError")


def conflict(degraded, back):
    """Return a database, and its saver whose waiting step was given up for somebody else's."""
    bare = Memory()
    saver, other = degraded(bare), somebody_else(bare)
    put(saver, "1")
    bare.plug.out = True
    put(saver, "3", "1")
    put(other, "2", "1")
    back(saver, bare.plug)
    return bare, saver


@pytest.fixture
def back(eventually):
    """Return a function that plugs a database in, and waits until nothing waits for it."""

    def plugged(saver, plug):
        plug.out, plug.pulled_at = False, 0
        assert eventually(lambda: guard_of(saver).waits == 0)

    return plugged


def both_approve(saver, plug, other):
    """Have a run be resumed by both, here while the database is away."""
    graph, _ran = approving(saver)
    graph.invoke({"notes": ["hello"]}, thread())
    plug.pulled_at = plug.writes + 1
    try:
        ours = graph.invoke(Command(resume="ours"), thread())
    except ConnectionError:
        # Pulled in the instant between the resuming run's first reads: it raised, and ran nothing.
        ours = graph.invoke(Command(resume="ours"), thread())
    theirs = approving(other)[0].invoke(Command(resume="theirs"), thread())
    return ours["notes"], theirs["notes"]


def notes(saver, name="t-1"):
    return approving(saver)[0].get_state(thread(name)).values.get("notes")


def test_of_two_approvals_theirs_is_in_the_thread(degraded, back, fates):
    """Who asks for the thread sees what they did; ours is given up, and each write is told."""
    bare = Memory()
    saver = degraded(bare)
    ours, theirs = both_approve(saver, bare.plug, somebody_else(bare))
    waited = guard_of(saver).waits
    back(saver, bare.plug)

    assert ours[-2] == "answered ours"
    assert notes(saver) == theirs
    assert list(bare.storage) == ["t-1"]
    assert waited > 1
    assert until(lambda: fates()[CHANGED] == waited)


def test_between_two_scopes_on_a_file(patient, bench, tmp_path, back, eventually):
    """The other one may be guarded, by another scope or in another process."""
    path = str(tmp_path / "threads.db")
    elsewhere = replace(bench, policy=patient.policy)
    with (
        pluggable(SqliteSaver).from_conn_string(path) as bare,
        SqliteSaver.from_conn_string(path) as second,
    ):
        saver = guarded(bare, patient, degraded=True)
        other = guarded(second, elsewhere, degraded=True)
        _ours, theirs = both_approve(saver, bare.plug, other)
        back(saver, bare.plug)

        assert notes(second)[-2:] == ["answered theirs", "after for <EMAIL_ADDRESS>"]
        assert len(notes(second)) == len(theirs)
    elsewhere.parts.guards.replayer.close(5)


async def test_in_a_loop(degraded, tmp_path):
    """The asynchronous saver is asked by its coroutines, with the same answer."""
    path = str(tmp_path / "threads.db")
    async with (
        pluggable(AsyncSqliteSaver).from_conn_string(path) as bare,
        AsyncSqliteSaver.from_conn_string(path) as other,
    ):
        saver = degraded(bare)
        graph, theirs = approving(saver)[0], approving(other)[0]
        await graph.ainvoke({"notes": ["hello"]}, thread())
        bare.plug.pulled_at = bare.plug.writes + 1
        try:
            await graph.ainvoke(Command(resume="ours"), thread())
        except ConnectionError:
            await graph.ainvoke(Command(resume="ours"), thread())  # as above
        await theirs.ainvoke(Command(resume="theirs"), thread())
        bare.plug.out, bare.plug.pulled_at = False, 0
        async with asyncio.timeout(GIVE_UP_S):
            while guard_of(saver).waits:  # noqa: ASYNC110 - a task of the guard's ends it
                await asyncio.sleep(0.005)
        after = await theirs.aget_state(thread())

    assert after.values["notes"][-2] == "answered theirs"


def test_their_approval_may_be_under_way(degraded, back):
    """They have answered, and made no checkpoint yet: it is theirs all the same."""
    bare = Memory()
    saver, other = degraded(bare), somebody_else(bare)
    config = put(saver, "1")
    saver.get_tuple(thread())
    bare.plug.out = True
    saver.put_writes(config, [("value", "ours")], "task of ours")
    put(saver, "2", "1")
    other.put_writes(config, [("__resume__", "theirs")], "task of theirs")
    back(saver, bare.plug)

    assert steps(bare) == ["1"]
    assert [each[2] for each in bare.get_tuple(thread()).pending_writes] == ["theirs"]


def test_a_thread_that_both_begin_is_theirs(degraded, back):
    """There was nothing as it was looked at, and there is something as it is written."""
    bare = Memory()
    saver, other = degraded(bare), somebody_else(bare)
    saver.get_tuple(thread())
    bare.plug.out = True
    put(saver, "1")
    put(other, "2")
    back(saver, bare.plug)

    assert steps(bare) == ["2"]


def on(step):
    return {"configurable": {"thread_id": "t-1", "checkpoint_ns": "", "checkpoint_id": step}}


GOING_ON = {
    "a step on what was given up": lambda saver: put(saver, "4", "3"),
    "another step on what that was made on": lambda saver: put(saver, "4", "1"),
    "writes on what was given up": lambda saver: saver.put_writes(on("3"), [("value", "x")], "t"),
    "writes on what that was made on": lambda saver: saver.put_writes(on("1"), [("v", "x")], "t"),
    "a read of what was given up": lambda saver: saver.get_tuple(on("3")),
}


@pytest.mark.parametrize("going_on", GOING_ON.values(), ids=GOING_ON)
def test_a_run_that_goes_on_is_refused(degraded, back, going_on):
    """It would be the thread's latest again, without what was given up: so would what follows."""
    bare, saver = conflict(degraded, back)
    with pytest.raises(MnemoscopeError, match="begin a new run"):
        going_on(saver)
    with pytest.raises(MnemoscopeError, match="begin a new run"):
        put(saver, "5", "4" if going_on is GOING_ON["a step on what was given up"] else "3")

    assert steps(bare) == ["2", "1"]
    assert guard_of(saver).waits == 0
    assert bare.get_tuple(on("1")).pending_writes == []
    assert saver.get_tuple(thread()).checkpoint["id"] == "2"


async def test_it_is_refused_in_a_loop(degraded, back):
    """As it is without one."""
    bare, saver = conflict(degraded, back)
    with pytest.raises(MnemoscopeError, match="begin a new run"):
        await saver.aput(on("3"), checkpoint("4"), {}, {})

    assert steps(bare) == ["2", "1"]


def test_who_reads_an_older_step_may_go_on_from_it(degraded, back):
    """Also from the one that what was given up was made on."""
    bare, saver = conflict(degraded, back)
    saver.get_tuple(on("1"))
    put(saver, "5", "1")

    assert steps(bare) == ["5", "2", "1"]


def test_who_reads_the_thread_afresh_goes_on_with_theirs(degraded, back):
    """A new run of this process is made on what they left, and stays in the thread."""
    bare, saver = conflict(degraded, back)
    put(saver, "5", saver.get_tuple(thread()).checkpoint["id"])

    assert steps(bare) == ["5", "2", "1"]


def test_both_are_in_the_thread_where_that_is_asked_for(degraded, back, fates):
    """It is told all the same, once."""
    bare = Memory()
    saver, other = degraded(bare, on_conflict="both"), somebody_else(bare)
    put(saver, "1")
    bare.plug.out = True
    put(saver, "3", "1")
    put(other, "2", "1")
    back(saver, bare.plug)

    assert steps(bare) == ["3", "2", "1"]
    assert guard_of(saver).waiting[0].conflicts == 1
    assert until(lambda: fates()[Journalled.REPLAYED, ""] == 1)


def test_it_is_told(degraded, patient, back, events, caplog):
    """In an event for each write, the log, health and a metric, and without the thread's id."""
    bare = Memory()
    saver, other = degraded(bare), somebody_else(bare)
    put(saver, "1")
    bare.plug.out = True
    put(saver, "3", "1")
    put(other, "2", "1")
    with caplog.at_level(logging.WARNING, "mnemoscope"):
        back(saver, bare.plug)
    told = [each for each in events() if (each.error or "").endswith("ThreadChangedError")]
    health = examine(load_settings(), patient.parts.guards, 2.0)
    check = next(each for each in health.checks if each.name == "store.langgraph.checkpoint")
    samples = LiveMetrics(patient.parts.guards).read()
    counted = [each for each in samples if "conflicts" in repr(each)]

    assert [(each.run, each.method) for each in told] == [("t-1", "put")]
    assert "the thread is theirs, and 1 writes that waited are given up" in caplog.text
    assert "t-1" not in caplog.text
    assert "1 threads were changed by others while writes waited" in check.detail
    assert len(counted) == 1


def test_to_go_on_from_an_older_checkpoint_is_no_conflict(degraded, back):
    """Whoever does so knows that there are later ones."""
    bare = Memory()
    saver, other = degraded(bare), somebody_else(bare)
    put(other, "1")
    put(other, "2", "1")
    saver.get_tuple({"configurable": {**thread()["configurable"], "checkpoint_id": "1"}})
    bare.plug.out = True
    put(saver, "3", "1")
    back(saver, bare.plug)

    assert steps(bare) == ["3", "2", "1"]
    assert guard_of(saver).waiting[0].conflicts == 0


def test_a_write_that_arrived_after_all_is_no_conflict(degraded, back):
    """The saver took it and lost its connection before it could say so."""
    bare = Memory()
    saver = degraded(bare)
    put(saver, "1")
    plain = bare.put

    def put_and_fail(*args):
        plain(*args)
        bare.plug.out = True
        raise ConnectionError

    bare.put = put_and_fail
    put(saver, "2", "1")
    put(saver, "3", "2")
    bare.put = plain
    back(saver, bare.plug)

    assert steps(bare) == ["3", "2", "1"]
    assert guard_of(saver).waiting[0].conflicts == 0


def test_another_policy_is_refused(degraded):
    """As the checkpointer is wrapped."""
    with pytest.raises(ConfigurationError, match="theirs, both"):
        degraded(Memory(), on_conflict="ours")


# -- one database, several clients -----------------------------------------------------------------


@pytest.mark.usefixtures("one_database")
def test_wrappers_of_one_database_answer_for_each_other(degraded, back):
    """What one could not write, another reads, and writes behind."""
    bare = Memory()
    twin = Memory()
    twin.storage, twin.writes, twin.blobs = bare.storage, bare.writes, bare.blobs
    twin.plug = bare.plug
    first, second = degraded(bare), degraded(twin)
    put(first, "1")
    bare.plug.out = True
    put(first, "2", "1")
    read = second.get_tuple(thread()).checkpoint["id"]
    put(second, "3", read)
    waiting = guard_of(first).waits, guard_of(second).waits
    back(first, bare.plug)
    back(second, bare.plug)

    assert read == "2"
    assert waiting == (1, 1)
    assert steps(bare) == ["3", "2", "1"]
    assert guard_of(first).waiting[0].conflicts + guard_of(second).waiting[0].conflicts == 0


def test_two_databases_share_nothing(degraded):
    """A thread of the same name is another thread."""
    away, there = Memory(), Memory()
    first, second = degraded(away), degraded(there)
    put(first, "1")
    away.plug.out = True
    put(first, "2", "1")

    assert second.get_tuple(thread()) is None
    put(second, "5")
    assert steps(there) == ["5"]
    away.plug.out = False


def test_what_waits_does_not_end_with_its_wrapper(degraded, patient, eventually):
    """The application let go of it: what it wrote is written all the same."""
    bare = Memory()
    saver = degraded(bare)
    put(saver, "1")
    bare.plug.out = True
    put(saver, "2", "1")
    del saver
    gc.collect()
    bare.plug.out = False

    assert eventually(lambda: steps(bare) == ["2", "1"])
    assert eventually(lambda: not patient.parts.guards.shared.held)


# -- without another call --------------------------------------------------------------------------


def test_what_waits_of_a_loop_that_ended_is_written_without_it(degraded, eventually):
    """A saver whose coroutines need no loop of its own is called from a thread then."""
    bare = Memory()
    saver = degraded(bare)

    async def run():
        await saver.aput(
            {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}, checkpoint("1"), {}, {}
        )

    bare.plug.out = True
    asyncio.run(run())
    bare.plug.out = False

    assert eventually(lambda: steps(bare) == ["1"])
