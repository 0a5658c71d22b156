"""Deleted threads: nothing that waits, or may still come, brings them back."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from mnemoscope.adapters.langgraph.checkpoint.adapter import ADAPTER
from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory import DeadlineExceededError, StoreUnavailableError
from mnemoscope.memory.api import DataSubject, OperationClass
from mnemoscope.memory.limits.policy import DEADLINES_S
from mnemoscope.telemetry.event.event import Journalled
from tests.kit.bench import wrapping
from tests.kit.patience import GIVE_UP_S, until
from tests.kit.unplugged_savers import (
    Memory,
    checkpoint,
    pluggable,
    put,
    somebody_else,
    steps,
    thread,
)

guarded = wrapping(ADAPTER)
DELETED = Journalled.LOST, "ThreadDeletedError"


@pytest.fixture
def back(eventually):
    """Return a function that plugs a database in, and waits until nothing waits for it."""

    def plugged(saver, plug):
        plug.out, plug.pulled_at = False, 0
        assert eventually(lambda: guard_of(saver).waits == 0)

    return plugged


def waiting(degraded, bare):
    """Return a saver with a thread of which two writes wait, since its database is away."""
    saver = degraded(bare)
    put(saver, "1")
    bare.plug.out = True
    config = put(saver, "2", "1")
    saver.put_writes(config, [("value", "more")], "task")
    return saver


def test_what_waits_is_dropped_though_the_database_is_away(degraded, back, fates):
    """The deletion raises, since it was not reached; what is held here does not come back."""
    bare = Memory()
    saver = waiting(degraded, bare)
    with pytest.raises(ConnectionError):
        saver.delete_thread("t-1")
    waits = guard_of(saver).waits
    back(saver, bare.plug)
    before = steps(bare)
    saver.delete_thread("t-1")

    assert waits == 0
    assert before == ["1"]
    assert steps(bare) == []
    assert until(lambda: fates()[DELETED] == 2)


@pytest.mark.usefixtures("one_database")
@pytest.mark.parametrize("is_degraded", [True, False])
def test_another_wrapper_deletes_it_too(degraded, patient, hold, back, is_degraded):
    """It means the same database, so what waits for that is dropped."""
    bare = Memory()
    saver = waiting(degraded, bare)
    hold(saver)
    bare.plug.out = False
    other = guarded(somebody_else(bare), patient, degraded=is_degraded)
    other.delete_thread("t-1")
    guard_of(saver).waiting[0]._not_before = 0.0
    back(saver, bare.plug)

    assert steps(bare) == []
    assert somebody_else(bare).writes == {}


def test_a_thread_that_was_deleted_elsewhere_is_not_written_back(degraded, back, fates):
    """By an unguarded client, in another process: what it was made on is gone."""
    bare = Memory()
    saver = waiting(degraded, bare)
    somebody_else(bare).delete_thread("t-1")
    back(saver, bare.plug)

    assert steps(bare) == []
    assert somebody_else(bare).writes == {}
    assert until(lambda: fates()[DELETED] == 2)


def test_nor_if_somebody_began_it_anew(degraded, back, fates):
    """What waits was made on what was deleted: it is kept nowhere."""
    bare = Memory()
    saver, other = waiting(degraded, bare), somebody_else(bare)
    other.delete_thread("t-1")
    put(other, "3")
    back(saver, bare.plug)

    assert steps(bare) == ["3"]
    assert list(bare.storage) == ["t-1"]
    assert until(lambda: fates()[DELETED] == 2)


def test_by_another_scope_on_a_file(patient, bench, tmp_path, back):
    """Two connections to one file, as of two processes."""
    path = str(tmp_path / "threads.db")
    elsewhere = replace(bench, policy=patient.policy)
    with (
        pluggable(SqliteSaver).from_conn_string(path) as bare,
        SqliteSaver.from_conn_string(path) as second,
    ):
        saver = waiting(lambda bare: guarded(bare, patient, degraded=True), bare)
        guarded(second, elsewhere).delete_thread("t-1")
        back(saver, bare.plug)

        assert steps(second) == []
        assert second.conn.execute("SELECT * FROM writes").fetchall() == []


async def test_in_a_loop(degraded, tmp_path, fates):
    """Through coroutines: dropped, told, and not written back."""
    async with pluggable(AsyncSqliteSaver).from_conn_string(str(tmp_path / "threads.db")) as bare:
        saver = degraded(bare)
        ids = {"thread_id": "t-1", "checkpoint_ns": ""}
        config = await saver.aput({"configurable": ids}, checkpoint("1"), {}, {"value": "1"})
        bare.plug.out = True
        await saver.aput(config, checkpoint("2"), {}, {"value": "2"})
        waits = guard_of(saver).waits
        bare.plug.out = False
        await saver.adelete_thread("t-1")
        left = [each async for each in bare.alist(thread())]

    assert waits == 1
    assert left == []
    assert guard_of(saver).waits == 0
    assert until(lambda: fates()[DELETED] == 1)


def test_runs_are_not_deleted_while_something_waits(degraded):
    """Whether it is of theirs is not known: it is refused, and nobody is told that it is done."""

    class Deleting(Memory):
        def delete_for_runs(self, run_ids):
            pytest.fail("the saver was asked")

    bare = Deleting()
    saver = waiting(degraded, bare)
    with pytest.raises(StoreUnavailableError):
        saver.delete_for_runs(["r-1"])

    assert guard_of(saver).waits == 2
    saver.get_tuple(thread())
    bare.plug.out = False


async def test_an_erasure_drops_what_waits(degraded, patient, hold, back):
    """Of a thread that the database never had, too: its writes name the customer."""
    bare = Memory()
    saver = degraded(bare)
    mine = {"thread_id": "t-1", "checkpoint_ns": "", "user_id": "c-17"}
    saver.get_tuple(thread())
    bare.plug.out = True
    saver.put({"configurable": mine}, checkpoint("1"), {}, {"value": "1"})
    hold(saver)
    bare.plug.out = False
    await patient.subject_data.named()["langgraph.checkpoint"].erase(DataSubject(customer="c-17"))
    guard_of(saver).waiting[0]._not_before = 0.0
    back(saver, bare.plug)

    assert steps(bare) == []


# -- writes that may still come --------------------------------------------------------------------


class Slow(Memory):
    """
    A saver that takes its time for a write.

    Attributes:
        entered: A write has begun.
        gate: Until it is set, no write goes on.
    """

    def __init__(self):
        super().__init__()
        self.entered, self.gate, self.deleted = threading.Event(), threading.Event(), Counter()
        self.gate.set()

    def put(self, *args, **kwargs):
        self.entered.set()
        assert self.gate.wait(GIVE_UP_S)
        return super().put(*args, **kwargs)

    def delete_thread(self, thread_id):
        super().delete_thread(thread_id)
        self.deleted[thread_id] += 1
        self.gate.set()


def hurried(patient, **deadlines_s):
    """Return a bench whose checkpoints, or deletions, have a short deadline."""
    given = {OperationClass(name): seconds for name, seconds in deadlines_s.items()}
    policy = replace(patient.policy, deadlines_s={**DEADLINES_S, **given})
    return replace(patient, policy=policy)


@pytest.mark.parametrize("is_degraded", [True, False])
def test_a_write_that_comes_late_is_deleted_as_well(patient, is_degraded):
    """Its caller was told that it timed out; the deletion is confirmed when it is gone."""
    bench = hurried(patient, checkpoint=0.05)
    bare = Slow()
    saver = guarded(bare, bench, degraded=is_degraded)
    put(saver, "1")
    bare.gate.clear()
    if is_degraded:
        put(saver, "2", "1")
    else:
        with pytest.raises(DeadlineExceededError):
            put(saver, "2", "1")
    saver.delete_thread("t-1")
    bench.parts.guards.replayer.close(5)

    assert steps(bare) == []
    assert bare.deleted["t-1"] == 2


def test_where_that_is_not_known_it_says_so(patient, monkeypatch):
    """The write hangs for longer than the deletion may take."""
    bench = hurried(patient, checkpoint=0.05, forget=0.2)
    bare = Slow()
    monkeypatch.setattr(Slow, "delete_thread", Memory.delete_thread)
    saver = guarded(bare, bench)
    put(saver, "1")
    bare.gate.clear()
    with pytest.raises(DeadlineExceededError):
        put(saver, "2", "1")
    with pytest.raises(DeadlineExceededError, match="may still take effect"):
        saver.delete_thread("t-1")
    bare.gate.set()


def test_a_write_that_is_being_made_again_is_deleted_as_well(degraded, eventually):
    """It does not come after the deletion, and nothing comes behind it."""
    bare = Slow()
    saver = waiting(degraded, bare)
    put(saver, "3", "2")
    bare.entered.clear()
    bare.gate.clear()
    bare.plug.out = False
    assert bare.entered.wait(GIVE_UP_S)
    saver.delete_thread("t-1")

    assert eventually(lambda: guard_of(saver).waits == 0)
    assert steps(bare) == []
    assert bare.deleted["t-1"] == 2
