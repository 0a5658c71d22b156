"""A queue that is full because the database takes long: its events go to the disk, none is lost."""

from __future__ import annotations

import fcntl
import sqlite3
import sys
import threading
import time
from contextlib import ExitStack, closing
from functools import partial

import pytest

from mnemoscope.audit.database.errors import AuditError
from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.sink.backoff import backoff_after
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.sink.spool import Spool, spool_files
from mnemoscope.audit.verification.report import FindingKind
from mnemoscope.audit.verification.whole import verify
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.delivery.fan_out import UNCOUNTED, UNSHARED
from mnemoscope.telemetry.delivery.lane_stats import LaneLimits
from mnemoscope.telemetry.event.event import Redacted
from tests.kit.patience import GIVE_UP_S, until

MAX_BYTES = 64 * 1024 * 1024
"""What a spool may take, unless its user says otherwise."""

PATIENT = {"linger_s": 0.0, "spill_patience_s": GIVE_UP_S}
LIMITS = LaneLimits(items=32, batch=8, **PATIENT)


class SlowLog(AuditLog):
    """A log whose database does not answer until it is let go."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.go = threading.Event()
        self.asked = threading.Event()

    def record(self, drafts, **how):
        self.asked.set()
        assert self.go.wait(GIVE_UP_S)
        return super().record(drafts, **how)


@pytest.fixture
def made_slow(path, tmp_path, subject_keys):
    """Return what makes a sink whose database is slow, and the drain in front of it."""
    made = []

    def make(limits=LIMITS, max_bytes=MAX_BYTES):
        log = SlowLog(path, subject_keys)
        spool = Spool(tmp_path / "audit.spool", log.ring, max_bytes, content=content_again)
        sink = AuditSink(log, spool)
        sink._heartbeat.start = lambda **_how: None
        drain = Drain([sink], limits=limits)
        made.append((sink, drain))
        return sink, drain

    yield make
    for sink, drain in made:
        sink.log.go.set()
        drain.close(GIVE_UP_S)


@pytest.fixture
def slow(made_slow):
    """Return a sink whose database is slow, with a queue that holds little."""
    return made_slow()


@pytest.mark.parametrize(
    ("first", "second"), [("accepts", "accepts"), ("accepts", "append"), ("append", "accepts")]
)
def test_callers_that_ask_at_once_have_one_file(
    first, second, tmp_path, log, event_factory, monkeypatch
):
    """In mode strict each caller asks whether there is room: what is kept then can be read."""
    spool = Spool(tmp_path / "audit.spool", log.ring, content=content_again)
    ask = {"accepts": spool.accepts, "append": lambda: spool.append([event_factory()])}
    module = sys.modules[Spool.__module__]
    other, made, begun = threading.Thread(target=ask[second]), [], module.begun_file

    def slowly(path, *given):
        made.append(path)
        if len(made) == 1:
            other.start()
            other.join(0.2)  # it would have made a file of its own by then
        return begun(path, *given)

    monkeypatch.setattr(module, "begun_file", slowly)
    ask[first]()
    other.join(GIVE_UP_S)
    spool.append([event_factory()])
    read = []
    kept = spool.replay(read.extend, print)

    assert kept == len(read) == 1 + (first, second).count("append")
    assert len(made) == 1
    assert spool_files(tmp_path / "audit.spool") == []


def taken_over(path, tmp_path, subject_keys, max_bytes=MAX_BYTES):
    """Be the next process of the machine; return the log, with all that was left behind."""
    log = AuditLog(path, subject_keys)
    sink = AuditSink(
        log, Spool(tmp_path / "audit.spool", log.ring, max_bytes, content=content_again)
    )
    sink.attach(Drain([sink]))
    sink.probe()
    sink.close(GIVE_UP_S)
    log = AuditLog(path, subject_keys)
    log.spool_path = tmp_path / "audit.spool"
    return log


def emit(drain, events):
    for event in events:
        drain.emit(event)


def emit_and_hang(sink, drain, event_factory):
    """Make events until the database hangs while it writes the first of them."""
    emit(drain, [event_factory() for _ in range(8)])
    assert sink.log.asked.wait(GIVE_UP_S)


def gaps_in(path):
    """Return how many gaps the log declares, also of events that came after all."""
    with closing(sqlite3.connect(path)) as connection:
        found = "SELECT count(*) FROM audit_event WHERE operation = 'audit.gap'"
        return connection.execute(found).fetchone()[0]


def stats_of(drain):
    (stats,) = (each for each in drain.stats() if each.sink == "audit")
    return stats


def test_events_that_a_full_queue_has_no_room_for_wait_on_the_disk(
    slow, event_factory, path, subject_keys
):
    """While the database holds the sink up, four times what the queue holds is kept, in order."""
    sink, drain = slow
    emit_and_hang(sink, drain, event_factory)
    for _ in range(16):
        emit(drain, [event_factory() for _ in range(8)])
        until(lambda: stats_of(drain).queued <= 24)
    assert sink.waiting > 0
    sink.log.go.set()

    assert drain.flush(GIVE_UP_S)
    assert stats_of(drain).dropped == {}
    assert sink.waiting == 0
    drain.close(GIVE_UP_S)
    log = AuditLog(path, subject_keys)
    found = verify(log)
    assert (log.count(), found.gaps, found.lost) == (17 * 8, 0, 0)
    assert gaps_in(path) == 0
    assert sink.stats.spooled > 0


def test_what_this_process_spilled_is_recorded_without_a_word(slow, event_factory, caplog):
    """It was never in danger: nobody is to read of it in each burst."""
    sink, drain = slow
    emit_and_hang(sink, drain, event_factory)
    emit(drain, [event_factory() for _ in range(17 * 8 - 8)])
    sink.log.go.set()
    assert drain.flush(GIVE_UP_S)
    drain.close(GIVE_UP_S)

    assert sink.stats.spooled > 0
    assert [each.message for each in caplog.records] == []


def in_threads(drain, event_factory, count, threads=4):
    """Emit so many events, from several threads at once."""
    events = [event_factory(customer=None) for _ in range(count)]
    parts = [events[place::threads] for place in range(threads)]
    workers = [threading.Thread(target=emit, args=(drain, part)) for part in parts]
    for each in workers:
        each.start()
    for each in workers:
        each.join(GIVE_UP_S)


@pytest.mark.long
def test_nothing_is_dropped_however_far_callers_are_ahead_of_the_database(
    made_slow, event_factory, path, tmp_path
):
    """A hundred times what the queue holds is kept while the database hangs: each is there once."""
    sink, drain = made_slow(LaneLimits(items=256, batch=64, **PATIENT), 256 << 20)
    in_threads(drain, event_factory, 20_000)
    stats = stats_of(drain)
    assert (stats.offered, stats.dropped) == (20_000, {})
    assert stats.queued <= 256 + UNSHARED + 4 * UNCOUNTED + 128 + 64
    assert sink.waiting > 19_000
    assert sum(each.value for each in sink.samples() if "spool_bytes" in each.name) > 19_000 * 50
    sink.log.go.set()

    assert drain.flush(GIVE_UP_S)
    drain.close(GIVE_UP_S)
    log = AuditLog(path, sink.log.ring.current)
    log.spool_path = tmp_path / "audit.spool"
    found = verify(log)
    assert (log.count(), found.state, found.gaps, found.lost) == (20_000, "ok", 0, 0)
    assert gaps_in(path) == 0
    assert spool_files(tmp_path / "audit.spool") == []


def test_a_spool_that_is_full_costs_exactly_what_is_declared(made_slow, event_factory, path):
    """Only what is beyond its bound is dropped: counted by the queue, declared in the log."""
    sink, drain = made_slow(max_bytes=64 * 1024)
    in_threads(drain, event_factory, 2_000)
    sink.log.go.set()
    drain.flush(GIVE_UP_S)
    emit(drain, [event_factory()])  # what is missing before it is a gap
    drain.close(GIVE_UP_S)

    stats = stats_of(drain)
    log = AuditLog(path, sink.log.ring.current)
    found = verify(log)
    assert 0 < stats.dropped["overflow"] < 2_000
    assert log.count() == stats.delivered == 2_001 - stats.dropped["overflow"]
    assert found.lost == stats.dropped["overflow"]


def test_what_is_left_when_the_time_is_up_is_on_the_disk(
    slow, event_factory, path, tmp_path, subject_keys
):
    """The queue, and the batch that is being written: the next process records them, once."""
    sink, drain = slow
    emit_and_hang(sink, drain, event_factory)
    emit(drain, [event_factory() for _ in range(12)])
    drain.close(0.0)

    assert stats_of(drain).dropped == {}
    assert sink.spool.stats().events == 20
    sink.log.go.set()
    until(lambda: stats_of(drain).queued == 0 and drain._lanes[0]._thread is None)
    log = taken_over(path, tmp_path, subject_keys)
    found = verify(log)
    assert (log.count(), found.state, found.lost) == (20, "ok", 0)


def test_a_batch_that_fails_for_an_unknown_reason_is_kept(
    made_slow, event_factory, path, monkeypatch
):
    """It is recorded later, but for the event that no database takes, which is declared."""
    sink, drain = made_slow(LaneLimits(items=32, batch=8, backoff_s=0.0, **PATIENT))
    record, bad = SlowLog.record, 3

    def fails(self, drafts, **how):
        if any(each.writer_seq == bad for each in drafts):
            raise RuntimeError("a defect of ours")
        return record(self, drafts, **how)

    monkeypatch.setattr(SlowLog, "record", fails)
    sink.log.go.set()
    emit(drain, [event_factory() for _ in range(8)])
    drain.flush(GIVE_UP_S)
    drain.close(GIVE_UP_S)

    log = AuditLog(path, sink.log.ring.current)
    found = verify(log)
    assert stats_of(drain).dropped == {}
    assert (log.count(), found.lost) == (7, 1)


def test_where_no_thread_can_be_started_callers_keep_events_themselves(
    slow, event_factory, path, tmp_path, subject_keys, monkeypatch
):
    """As when the machine has no more threads, or the interpreter ends."""
    _sink, drain = slow

    def refuses(_thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as broken:
        broken.setattr(threading.Thread, "start", refuses)
        emit(drain, [event_factory() for _ in range(100)])
        drain.close(0.0)

    assert stats_of(drain).dropped == {}
    log = taken_over(path, tmp_path, subject_keys)
    assert (log.count(), verify(log).lost) == (100, 0)


def test_a_disk_that_hangs_holds_nobody_up_for_longer_than_once(
    made_slow, event_factory, monkeypatch
):
    """Then events are dropped, and counted, until it goes on."""
    sink, drain = made_slow(LaneLimits(items=32, batch=8, linger_s=0.0, spill_patience_s=0.01))
    goes_on, looks = threading.Event(), []
    append = sink._overflow.append_events

    def hangs(events):
        assert goes_on.wait(GIVE_UP_S)
        append(events)

    monkeypatch.setattr(sink._overflow, "append_events", hangs)
    sleep, caller = time.sleep, threading.get_ident()

    def look(seconds):
        sleep(seconds)
        if threading.get_ident() == caller:
            looks.append(seconds)

    monkeypatch.setattr("mnemoscope.telemetry.delivery.lane.time.sleep", look)
    emit(drain, [event_factory() for _ in range(1_000)])
    assert stats_of(drain).dropped["overflow"] > 900
    assert len(looks) <= 20  # ten for the disk, and less than ten for the thread to begin
    goes_on.set()
    until(lambda: stats_of(drain).queued <= 32)


def test_what_is_kept_is_encrypted_and_comes_back_whole(
    slow, event_factory, path, tmp_path, subject_keys
):
    """Nobody who has the disk reads content or customer; the trail has both."""
    sink, drain = slow
    content = Redacted({"query": "likes green tea"}, 15)
    emit(drain, [event_factory(content=content, run="r-17") for _ in range(100)])

    def spilled():
        return b"".join(each.read_bytes() for each in spool_files(tmp_path / "audit.spool"))

    assert until(spilled)  # by the lane's own thread
    written = spilled()
    assert [
        word for word in (b"green tea", b"ada@example", b"r-17", b"acme") if word in written
    ] == []
    sink.log.go.set()
    drain.flush(GIVE_UP_S)
    drain.close(GIVE_UP_S)

    rows = list(AuditLog(path, subject_keys).rows(run="r-17"))
    assert [row.content for row in rows] == ['{"query":"likes green tea"}'] * 100


def test_a_file_of_kept_events_that_is_removed_is_missed(
    slow, event_factory, path, tmp_path, subject_keys
):
    """By number: its process has said how many it had counted."""
    sink, drain = slow
    sink.attach(drain)

    def made(count):
        numbers = (drain.next_seq() for _ in range(count))
        return [event_factory(writer_id=drain.writer_id, writer_seq=each) for each in numbers]

    emit(drain, made(8))
    assert sink.log.asked.wait(GIVE_UP_S)
    emit(drain, made(64))
    drain.close(0.0)
    until(lambda: stats_of(drain).queued == 8)
    sink._overflow.close()
    for each in spool_files(tmp_path / "audit.spool"):
        each.unlink()
    sink.log.go.set()
    until(lambda: drain._lanes[0]._thread is None)

    found = verify(taken_over(path, tmp_path, subject_keys))
    (what,) = found.findings[FindingKind.LOSS]
    assert "lost 64 events, and declared them" in what


def test_what_the_disk_does_not_take_is_dropped_and_counted(slow, event_factory, monkeypatch):
    """Only then; the queue goes on, and says how many."""
    sink, drain = slow
    monkeypatch.setattr(sink._overflow, "append_events", refuses)
    emit_and_hang(sink, drain, event_factory)
    emit(drain, [event_factory() for _ in range(64)])
    until(lambda: stats_of(drain).dropped.get("overflow", 0) > 0)
    sink.log.go.set()
    drain.flush(GIVE_UP_S)

    stats = stats_of(drain)
    assert stats.offered == stats.delivered + sum(stats.dropped.values())
    assert sink.log.count() == stats.delivered


def test_a_file_that_is_left_to_be_taken_over_counts_until_it_is(slow, event_factory, monkeypatch):
    """The database went away once more in between; what comes next has a file of its own."""
    sink, _drain = slow
    sink.log.go.set()
    sink.spill([event_factory() for _ in range(100)])
    before = spool_figures(sink)

    def goes_away(*_args):
        raise AuditError("it is away")

    with monkeypatch.context() as broken:
        broken.setattr(sink.spool, "adopt", goes_away)
        sink.beat()
    left = spool_figures(sink)
    sink._backoff = None
    sink.beat()

    assert before["events"] == left["events"] == 100
    assert before["bytes"] == left["bytes"] > 5_000
    assert before["full_ratio"] == before["bytes"] / MAX_BYTES
    assert left["full_ratio"] == 0
    assert spool_figures(sink) == {"events": 0, "bytes": 0, "full_ratio": 0}


def test_a_file_that_somebody_looks_at_waits_for_the_next_beat(slow, event_factory, caplog):
    """Another process, or a new file's writer, holds its lock for a moment to read its size."""
    sink, _drain = slow
    sink.log.go.set()
    sink.spill([event_factory() for _ in range(100)])
    path = sink._overflow.file_path
    with ExitStack() as locks:
        close = sink._overflow.close
        sink._overflow.close = partial(close_and_lock, sink._overflow, close, locks)
        assert not sink.flush(GIVE_UP_S)
        assert sink.waiting == 100

    assert sink.flush(GIVE_UP_S)
    assert (sink.waiting, sink.log.count(), path.exists()) == (0, 100, False)
    assert [each.message for each in caplog.records] == []


def close_and_lock(spool, close, locks):
    """Close the file of *spool*, and keep its lock as a process does that looks at its size."""
    path = spool.file_path
    close()
    fcntl.flock(locks.enter_context(path.open("rb")), fcntl.LOCK_EX | fcntl.LOCK_NB)


def spool_figures(sink):
    start = "mnemoscope_audit_spool_"
    found = (each for each in sink.samples() if each.name.startswith(start))
    return {each.name.removeprefix(start): each.value for each in found}


def test_what_the_disk_did_not_sync_is_synced_later(
    slow, event_factory, tmp_path, monkeypatch, caplog
):
    """It is said once, and tried until the disk takes it."""
    sink, _drain = slow
    sink.spill([event_factory()])
    overflow = sink._overflow
    with monkeypatch.context() as broken:
        broken.setattr("mnemoscope.telemetry.queue.event_file._sync", refuses)
        for _ in range(3):
            sink._sync_overflow()
    (said,) = (each.getMessage() for each in caplog.records)
    assert said.endswith("audit.spool took may be on no disk: no space left on device")

    sink._sync_overflow()
    assert overflow.syncing() is None


def test_what_was_spilled_is_synced_before_the_process_ends(slow, event_factory, monkeypatch):
    """As what waits for the database is: the machine may be switched off next."""
    sink, _drain = slow
    synced = []
    monkeypatch.setattr("mnemoscope.telemetry.queue.event_file._sync", synced.append)
    sink.spill([event_factory()])
    assert synced == []
    sink.log.go.set()
    sink._backoff = backoff_after(
        AuditError("it is away"), None, asked_at=sink._clock(), now=sink._clock()
    )
    sink.close(GIVE_UP_S)

    assert len(synced) == 2  # the file, and the folder that names it


def test_what_could_not_be_taken_over_is_synced(slow, event_factory, tmp_path, monkeypatch):
    """The process that wrote it may have been killed before it waited for the disk."""
    sink, _drain = slow
    sink.spill([event_factory()])
    sink._overflow.close()
    synced = []
    monkeypatch.setattr("os.fsync", synced.append)

    def is_away(_drafts):
        raise AuditError("it is away")

    with pytest.raises(AuditError):
        sink.spool.adopt(is_away, is_away, is_away)

    assert len(synced) == 1


def refuses(_drafts):
    raise OSError(28, "No space left on device")


def test_without_a_spool_nothing_is_spilled(path, subject_keys):
    """There is nowhere to put it."""
    assert not AuditSink(AuditLog(path, subject_keys)).spills
