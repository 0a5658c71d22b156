"""A queue that is full because the database takes long: its events go to the disk, none is lost."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest
from patience import GIVE_UP_S, until

from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.sink.spool import Spool
from mnemoscope.audit.verification.whole import verify
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.delivery.lane_stats import LaneLimits

LIMITS = LaneLimits(items=32, batch=8, linger_s=0.0)


class SlowLog(AuditLog):
    """A log whose database does not answer until it is let go."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.go = threading.Event()
        self.asked = threading.Event()

    def record(self, drafts):
        self.asked.set()
        assert self.go.wait(GIVE_UP_S)
        return super().record(drafts)


@pytest.fixture
def slow(path, tmp_path, subject_keys):
    """Return a sink whose database is slow, with a queue that holds little."""
    log = SlowLog(path, subject_keys)
    spool = Spool(tmp_path / "audit.spool", log.ring)
    sink = AuditSink(log, spool)
    sink._heartbeat.start = lambda: None
    drain = Drain([sink], limits=LIMITS)
    yield sink, drain
    log.go.set()
    drain.close(GIVE_UP_S)


def emit(drain, events):
    for event in events:
        drain.emit(event)


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
    emit(drain, [event_factory() for _ in range(8)])
    assert sink.log.asked.wait(GIVE_UP_S)
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


def test_what_the_disk_does_not_take_is_dropped_and_counted(slow, event_factory, monkeypatch):
    """Only then; the queue goes on, and says how many."""
    sink, drain = slow
    monkeypatch.setattr(sink._overflow, "append", refuses)
    emit(drain, [event_factory() for _ in range(8)])
    assert sink.log.asked.wait(GIVE_UP_S)
    emit(drain, [event_factory() for _ in range(64)])
    until(lambda: stats_of(drain).dropped.get("overflow", 0) > 0)
    sink.log.go.set()
    drain.flush(GIVE_UP_S)

    stats = stats_of(drain)
    assert stats.offered == stats.delivered + sum(stats.dropped.values())
    assert sink.log.count() == stats.delivered


def refuses(_drafts):
    raise OSError(28, "No space left on device")


def test_without_a_spool_nothing_is_spilled(path, subject_keys):
    """There is nowhere to put it."""
    assert not AuditSink(AuditLog(path, subject_keys)).spills
