"""Events of other processes, as a relay hands them to the audit trail."""

from __future__ import annotations

import itertools

import orjson
import pytest

from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.sink.spool import Spool
from mnemoscope.telemetry.delivery.sink import DeliveryError

WRITER = "c" * 16


@pytest.fixture
def start(tmp_path, subject_keys):
    """Return a function that starts the audit sink of one more relay of the same log."""
    made, seconds = [], itertools.count(step=60)

    def make(path=tmp_path / "audit.db"):
        log = AuditLog(path, subject_keys)
        sink = AuditSink(
            log, Spool(tmp_path / "spool", log.ring), clock=lambda: float(next(seconds))
        )
        sink._heartbeat.start = lambda: None  # the tests beat
        sink.follow_writers()
        made.append(sink)
        return sink

    yield make
    for each in made:
        each.close(1.0)


@pytest.fixture
def batch(event_factory):
    """Return a function that makes events of the writer with these numbers."""
    return lambda *numbers: [event_factory(writer_id=WRITER, writer_seq=each) for each in numbers]


def recorded(sink):
    """Return the numbers of the events in the log."""
    with sink.log.reading() as snapshot:
        found = snapshot.stream(
            "SELECT writer_seq FROM audit_event WHERE writer_id = ? ORDER BY seq", (WRITER,)
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


def test_a_gap_in_a_living_writers_numbers_is_declared(start, batch):
    """Its file was full, say."""
    sink = start()
    sink.write(batch(1, 5))
    sink.beat()
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


def test_an_end_cannot_be_declared_while_the_database_is_away(start, batch, tmp_path):
    """Whoever asked has to ask again."""
    (tmp_path / "in the way").touch()
    sink = start(tmp_path / "in the way" / "audit.db")

    with pytest.raises(DeliveryError):
        sink.end_writer(WRITER, 2, ended=False)
