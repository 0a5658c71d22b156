"""What waits beside a log: answers name it, and the next process takes it in."""

from __future__ import annotations

import pytest

from mnemoscope.adapters.cli.scope import open_trail
from mnemoscope.audit.bundle.source import evidence_of
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.sink.spool import Spool
from mnemoscope.audit.verification.whole import verify
from mnemoscope.audit.waiting import what_waits
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.queue.writer import QueueWriter
from tests.kit.patience import until


def spooled(log, folder, events):
    """Leave *events* in a spool, as a process does that is gone."""
    log.spool_path = folder / "audit.spool"
    spool = Spool(log.spool_path, log.ring, content=content_again)
    spool.append(events)
    spool.close()
    return str(log.spool_path)


def spilled(log, folder, events):
    """Leave them there as a full queue does."""
    log.spool_path = folder / "audit.spool"
    spool = Spool(log.spool_path, log.ring, content=content_again)
    spool.append_events(events)
    spool.close()
    return str(log.spool_path)


def relayed(log, folder, events):
    """Leave them to a relay."""
    log.relay_folder = folder / "relay"
    writer = QueueWriter(log.relay_folder, log.ring.current)
    for each in events:
        writer.append(each)
    writer.close()
    return str(log.relay_folder)


@pytest.mark.parametrize("leave", [spooled, spilled, relayed])
def test_an_answer_names_what_waits(log, tmp_path, event_factory, leave):
    """Where, and how many of its events are not in the log."""
    events = [event_factory(writer_seq=number) for number in range(1, 6)]
    log.append(events[:2])
    place = leave(log, tmp_path, events[2:] if leave is not relayed else events)
    with log.reading() as snapshot:
        evidence = evidence_of(snapshot, log)

    (line,) = what_waits(log)
    assert "3 events wait in" in line
    assert place in line
    assert evidence.waiting == (line,)


def test_nothing_waits_where_all_is_recorded(log, tmp_path, event_factory):
    """Files that a relay has not removed yet are no doubt."""
    events = [event_factory(writer_seq=number) for number in range(1, 6)]
    log.append(events)
    relayed(log, tmp_path, events)

    assert what_waits(log) == []


def test_each_command_that_answers_says_so(tmp_path, event_factory, monkeypatch, capsys):
    """On standard error: it opens the trail by one way."""
    key = "ab" * 32
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", key)
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_SPOOL", str(tmp_path / "audit.spool"))
    url = f"sqlite:///{tmp_path / 'audit.db'}"
    spooled(open_trail(url), tmp_path, [event_factory(writer_seq=1)])
    assert capsys.readouterr().err == ""
    open_trail(url)

    assert capsys.readouterr().err.startswith(
        "not in this answer: up to 1 events wait in the spool"
    )


@pytest.mark.parametrize("leave", [spooled, spilled])
def test_a_process_that_does_nothing_takes_it_in(log, tmp_path, event_factory, leave):
    """As soon as it is configured, and `verify` finds nothing missing."""
    leave(log, tmp_path, [event_factory(writer_seq=number) for number in range(1, 6)])
    spool = Spool(log.spool_path, log.ring, content=content_again)
    drain = Drain([sink := AuditSink(log, spool)])
    sink.attach(drain)
    until(lambda: what_waits(log) == [])
    drain.close()
    sink.close(1.0)

    assert log.count() == 5
    assert verify(log).state == "ok"


def test_a_process_that_finds_nothing_starts_no_thread(log, tmp_path, subject_keys):
    """One that never remembers anything costs nothing."""
    assert isinstance(subject_keys, SubjectKeys)
    sink = AuditSink(log, Spool(tmp_path / "audit.spool", log.ring, content=content_again))
    sink.attach(Drain([sink]))

    assert sink._heartbeat._thread is None
