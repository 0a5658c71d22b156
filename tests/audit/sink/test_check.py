"""What the audit trail says when it is asked whether it could be added to."""

from __future__ import annotations

import pytest

from mnemoscope.audit import AuditError, AuditLog
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.sink.spool import Spool
from mnemoscope.memory.api import Checkable
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.subject import SubjectKeys


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trail" / "audit.db"


@pytest.fixture
def sink(path, subject_keys):
    sink = AuditSink(AuditLog(path, subject_keys))
    yield sink
    sink.close(1.0)


def test_it_counts_what_is_recorded(sink, path, event_factory):
    """Beside the writer, which goes on."""
    sink.write([event_factory(), event_factory()])
    said = sink.check(1.0)
    sink.write([event_factory()])

    assert isinstance(sink, Checkable)
    assert said.startswith(f"2 events in {path}, signed ")
    assert sink.check(1.0).startswith(f"3 events in {path}, signed ")


def test_a_database_that_can_be_made_is_not_made(sink, tmp_path):
    """A check changes nothing."""
    assert "made with the first event" in sink.check(1.0)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_said(tmp_path, subject_keys):
    """A part of the path is a file."""
    (tmp_path / "file").touch()

    with pytest.raises(AuditError, match="cannot be used"):
        AuditLog(tmp_path / "file" / "audit.db", subject_keys).check()


def test_a_file_that_is_no_database_is_said(path, sink):
    """And nothing in it is changed."""
    path.parent.mkdir()
    path.write_bytes(b"milk, eggs" * 100)

    with pytest.raises(AuditError, match="is not an SQLite database"):
        sink.check(1.0)

    assert path.read_bytes() == b"milk, eggs" * 100


def test_another_key_is_said(sink, path, event_factory):
    """Nobody could be found in it."""
    sink.write([event_factory()])

    with pytest.raises(AuditError, match="another pseudonym key"):
        AuditLog(path, SubjectKeys(b"another sixteen bytes")).check()


def test_it_says_when_the_log_was_signed(sink, path, event_factory):
    """And by whom nobody was seen since a rotation: their key is still needed."""
    sink.write([event_factory()])
    sink.log.checkpoint_now()

    assert sink.check(1.0).startswith(f"1 events in {path}, signed ")
    rotated = AuditLog(
        path, SubjectKeys(b"another sixteen bytes"), previous=[sink.log.ring.current]
    )
    assert "1 customers are known by a previous key alone: keep it" in rotated.check()


def unwritable(tmp_path, subject_keys, *, trail=True, spool=True):
    """Return a sink of which one place, or both, are below a file."""
    (tmp_path / "file").touch()
    log = AuditLog(tmp_path / ("file" if trail else "good") / "audit.db", subject_keys)
    return AuditSink(
        log,
        Spool(tmp_path / ("file" if spool else "good") / "spool", log.ring, content=content_again),
    )


@pytest.mark.parametrize(
    ("trail", "spool", "ends"),
    [
        (True, False, "Until then events wait in {}/good/spool"),
        (True, True, "Events are lost: the audit spool {}/file/spool cannot be written ({why})"),
        (False, True, "cannot be written ({why}): events that cannot be recorded at once are lost"),
    ],
)
def test_what_cannot_be_written_is_logged_before_any_event(
    tmp_path, subject_keys, caplog, trail, spool, ends
):
    """In one line, which does not promise a spool that takes nothing either."""
    sink = unwritable(tmp_path, subject_keys, trail=trail, spool=spool)
    sink.attach(Drain([sink]))
    sink.close(1.0)

    (line,) = caplog.messages
    assert line.endswith(ends.format(tmp_path, why="a part of its path is a file, not a folder"))


def test_places_that_can_be_written_are_left_as_they_are(tmp_path, subject_keys, caplog):
    """Nothing is logged, and nothing made."""
    sink = unwritable(tmp_path, subject_keys, trail=False, spool=False)
    sink.attach(Drain([sink]))

    assert caplog.messages == []
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    sink.close(1.0)
