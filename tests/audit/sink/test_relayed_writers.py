"""Events of other processes, as a relay hands them to the audit trail."""

from __future__ import annotations

import time

import orjson
import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.record.sequence_gaps import PATIENCE_S
from mnemoscope.audit.record.writer_events import (
    HEARTBEAT,
    HEARTBEAT_S,
    IDLE_AFTER_S,
    SILENT_AFTER_S,
    STARTED,
)
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.sink.spool import Spool
from mnemoscope.audit.verification.whole import verify
from mnemoscope.memory.api import DeliveryError
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.delivery.sink import FollowedWriter
from tests.kit.still_clock import Clock

WRITER, OTHER = "c" * 16, "d" * 16


@pytest.fixture
def clock():
    return Clock(1_000.0)


@pytest.fixture
def there():
    """Return the writers whose files the relay reads."""
    return {WRITER: FollowedWriter(9, "durable")}


@pytest.fixture
def start(tmp_path, subject_keys, clock, there):
    """Return a function that starts the audit sink of one more relay of the same log."""
    made = []

    def make(path=tmp_path / "audit.db"):
        log = AuditLog(path, subject_keys)
        sink = AuditSink(
            log, Spool(tmp_path / "spool", log.ring, content=content_again), clock=clock
        )
        sink._heartbeat.start = lambda **_how: None  # the tests beat
        sink.follow_writers(lambda: there)
        made.append(sink)
        return sink

    yield make
    for each in made:
        each.close(1.0)


@pytest.fixture
def batch(event_factory):
    """Return a function that makes events of the writer with these numbers."""
    return lambda *numbers, writer=WRITER: [
        event_factory(writer_id=writer, writer_seq=each) for each in numbers
    ]


def recorded(sink):
    """Return the numbers of the events in the log."""
    with sink.log.reading() as snapshot:
        found = snapshot.stream(
            "SELECT writer_seq FROM audit_event WHERE kind = 'operation' AND writer_id = ? "
            "ORDER BY seq",
            (WRITER,),
        )
        return [number for (number,) in found]


def said(sink, name):
    """Return what the log says about itself by that name."""
    with sink.log.reading() as snapshot:
        found = snapshot.stream(
            "SELECT header FROM audit_event WHERE operation = ? ORDER BY seq", (name,)
        )
        return [orjson.loads(header)["data"] for (header,) in found]


def test_what_is_sent_again_is_recorded_once(start, batch):
    """By the relay after one that died before it could note how far it was."""
    start().write(batch(1, 2, 3))
    again = start()
    again.write(batch(1, 2, 3, 4))

    assert recorded(again) == [1, 2, 3, 4]


def test_a_relay_that_begins_in_the_middle_declares_no_loss(start, batch):
    """What came before was recorded by the one before."""
    start().write(batch(1, 2, 3))
    later = start()
    later.write(batch(4, 5))
    later.beat()
    later.beat()

    assert said(later, "audit.gap") == []


def test_a_gap_in_a_living_writers_numbers_is_declared(start, batch, clock):
    """Its file was full, say."""
    sink = start()
    sink.write(batch(1, 5))
    for _ in range(int(PATIENCE_S) + 1):
        clock.now_s += 1
        sink.beat()

    assert [(each["from_wseq"], each["to_wseq"]) for each in said(sink, "audit.gap")] == [(2, 4)]


def test_the_end_of_a_writer_declares_all_that_is_missing(start, batch):
    """At the end of its numbers too, which no later event shows; nothing twice."""
    start().write(batch(1, 2))
    sink = start()
    sink.write(batch(4, 5))
    sink.end_writer(WRITER, 7, ended=True)
    sink.beat()
    sink.beat()
    gaps = [(each["from_wseq"], each["to_wseq"]) for each in said(sink, "audit.gap")]

    assert gaps == [(3, 3), (6, 7)]
    assert [each["counter"] for each in said(sink, "writer.stopped")] == [7]
    assert said(sink, "writer.ended") == []


def test_a_killed_writer_of_whom_nothing_is_missing_has_ended(start, batch):
    """There are no later ones that may be missing: it would have said so in its file."""
    sink = start()
    sink.write(batch(1, 2))
    sink.end_writer(WRITER, 2, ended=False)

    assert [each["at_most"] for each in said(sink, "writer.ended")] == [2]
    assert said(sink, "audit.gap") == []


def test_what_waits_in_another_process_s_spool_is_not_called_lost(start, batch, tmp_path):
    """It is asked again, and has what was taken over by then."""
    sink = start()
    sink.write(batch(1))
    other = Spool(tmp_path / "spool", sink.log.ring, content=content_again)
    other.append(batch(2))
    with pytest.raises(DeliveryError):
        sink.end_writer(WRITER, 2, ended=True)
    other.close()
    sink.end_writer(WRITER, 2, ended=True)

    assert (recorded(sink), said(sink, "audit.gap"), sink.error) == ([1, 2], [], None)


def test_an_end_cannot_be_declared_while_the_database_is_away(start, batch, tmp_path):
    """Whoever asked has to ask again."""
    (tmp_path / "in the way").touch()
    sink = start(tmp_path / "in the way" / "audit.db")

    with pytest.raises(DeliveryError):
        sink.end_writer(WRITER, 2, ended=False)


def test_a_writer_has_begun_with_its_first_events(start, batch, there):
    """Which the log says once, however many relays record them; of each writer."""
    sink = start()
    sink.write(batch(1, 2))
    sink.write(batch(3))
    start().write(batch(4))
    there[OTHER] = FollowedWriter(1, "fail_open", "0.1")
    sink.write([*batch(5), batch(1, writer=OTHER)[0]])

    told = ("writer", "counter", "mode", "version")  # which is the writer's, not the relay's
    assert [tuple(each[name] for name in told) for each in said(sink, STARTED)] == [
        (WRITER, 9, "durable", ""),
        (OTHER, 1, "fail_open", "0.1"),
    ]


def test_a_writer_is_heard_of_as_long_as_it_has_events(start, batch, there, clock):
    """How far it is, at intervals; and once when none came of late."""
    sink = start()
    for counter in range(10, 13):
        there[WRITER] = FollowedWriter(counter, "durable")
        sink.write(batch(counter))
        clock.now_s += HEARTBEAT_S
    clock.now_s += IDLE_AFTER_S
    sink.beat()
    sink.beat()
    there[WRITER] = FollowedWriter(13, "durable")
    sink.write(batch(13))

    assert [(each["counter"], each["idle"]) for each in said(sink, HEARTBEAT)] == [
        *((11, False), (12, False), (12, True), (13, False)),
    ]


def test_a_writer_that_was_busy_under_the_relay_before_is_idle(start, batch, clock):
    """Else it would be taken for one that fell silent."""
    start().write(batch(1))
    later = start()
    for _ in range(3):
        later.beat()
        clock.now_s += IDLE_AFTER_S

    assert [each["idle"] for each in said(later, HEARTBEAT)] == [True]
    assert said(later, STARTED) != []


def test_nothing_is_said_of_a_writer_that_has_no_events_yet(start, clock):
    """Its file is there, and nothing of it is recorded."""
    sink = start()
    clock.now_s += IDLE_AFTER_S
    sink.beat()

    assert sink.stats.size == 0


def test_its_end_is_told_with_its_own_durability(start, batch, there):
    """Which may be another than the relay's."""
    sink = start()
    sink.write(batch(1))
    sink.end_writer(WRITER, 1, ended=False)

    assert [each["mode"] for each in said(sink, "writer.ended")] == ["durable"]


def test_who_has_files_left_has_not_fallen_silent(start, batch, tmp_path, subject_keys):
    """Whether it lives, or its relay has to come back first: its end is not declared."""
    start().write(batch(1))
    now_ns = time.time_ns() + int(2e9 * SILENT_AFTER_S)
    folder = tmp_path / "relay"
    folder.mkdir()
    found = {}
    for name in (WRITER, OTHER):
        (folder / f"{name}-00000001.events").touch()
        log = AuditLog(tmp_path / "audit.db", subject_keys, clock_ns=lambda: now_ns)
        log.relay_folder = folder
        writers = verify(log).writers
        found[name] = (writers["writing"], writers["silent"])
        (folder / f"{name}-00000001.events").unlink()
        log.close()

    assert found == {WRITER: (1, 0), OTHER: (0, 1)}
