"""A spool that an earlier release has left, as its process was stopped, is taken over."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mnemoscope.audit import AuditError, AuditLog, KeyMissingError
from mnemoscope.audit.record.header import sealed
from mnemoscope.audit.record.keys import Keyring, encrypted
from mnemoscope.audit.record.sealing import draft
from mnemoscope.audit.sink.earlier_spool import _BOUND_TO, _KIND
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.sink.spool import Spool, spool_files, spool_stats
from mnemoscope.audit.verification.report import FindingKind
from mnemoscope.audit.verification.whole import verify
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.files.file_lock import try_lock
from mnemoscope.telemetry.files.framing import header, new_marker, record, scan

LEFT = Path(__file__).parent / "data" / "mnemoscope-0.2.0.spool"
"""Written by mnemoscope 0.2.0: events 1 and 2, that 3 and 4 are lost, and 5 to 7 in one record."""

WRITER = "00000000000000aa"


@pytest.fixture
def spool(tmp_path):
    """Return the name of a spool that has such a file."""
    path = tmp_path / "spool" / "audit.spool"
    path.parent.mkdir()
    shutil.copyfile(LEFT, path)
    return path


@pytest.fixture
def take_over(path, spool):
    """Return what is the next process, with these keys; it returns the log."""

    def take(*keys):
        log = AuditLog(path, keys[0], previous=keys[1:])
        sink = AuditSink(log, Spool(spool, log.ring, content=content_again))
        sink._heartbeat.start = lambda **_how: None
        sink.beat()
        sink.close(1.0)
        return AuditLog(path, keys[0], previous=keys[1:])

    return take


def test_its_events_are_recorded_as_they_were(take_over, spool, subject_keys):
    """Content, customer, usage and losses; then its file is gone, and nothing is missing."""
    assert spool_stats(spool).events == 6
    log = take_over(subject_keys)

    rows = list(log.history("ada@example.com", "acme"))
    assert [each.event_id for each in rows] == [f"{WRITER}-{number}" for number in (1, 2, 5, 6, 7)]
    assert {each.content for each in rows} == {'{"query":"likes green tea"}'}
    assert log.spend()[0].cost_usd == 0.125
    found = verify(log)
    assert found.findings[FindingKind.LOSS] == [f"writer {WRITER} lost 2 events, and declared them"]
    assert found.state == "loss"
    assert spool_files(spool) == []


def test_while_its_process_is_alive_it_is_left_alone(take_over, spool, subject_keys):
    """It holds its lock, as that release does."""
    held = try_lock(spool)
    log = take_over(subject_keys)
    held.release()

    assert not log.path.exists()
    assert spool_files(spool) == [spool]


def test_one_of_a_previous_secret_is_read(take_over, subject_keys):
    """Its customer is known by the current one."""
    log = take_over(SubjectKeys(b"sixteen others or so"), subject_keys)

    assert len(list(log.history("ada@example.com", "acme"))) == 5


def test_one_of_another_secret_stays(spool, path):
    """Until that is named."""
    log = AuditLog(path, SubjectKeys(b"sixteen others or so"))
    with pytest.raises(KeyMissingError, match="PREVIOUS_KEYS"):
        Spool(spool, log.ring, content=content_again).adopt(log.record, print, print)

    assert spool_files(spool) == [spool]


def test_one_that_is_damaged_is_put_aside(take_over, spool, subject_keys):
    """What can be read of it is recorded."""
    data = bytearray(spool.read_bytes())
    data[scan(bytes(data), _KIND).records[0].end - 1] ^= 1
    spool.write_bytes(data)
    log = take_over(subject_keys)

    assert log.count() == 4
    assert spool_files(spool) == []
    assert len(list(spool.parent.glob("*.quarantine-*"))) == 1


def test_a_file_of_somebody_else_is_left_alone(take_over, spool, subject_keys):
    """By that name: it is no spool of ours."""
    spool.write_bytes(b"somebody else's" * 10)
    log = take_over(subject_keys)

    assert not log.path.exists()
    assert spool_files(spool) == [spool]


def test_what_is_not_taken_stays(spool, path, subject_keys):
    """The database goes away once more."""
    log = AuditLog(path, subject_keys)

    def is_away(_drafts):
        raise AuditError("it is away")

    with pytest.raises(AuditError):
        Spool(spool, log.ring, content=content_again).adopt(is_away, print, print)
    assert spool_stats(spool).events == 6


def test_headers_of_an_older_release_are_read(spool, path, event_factory, subject_keys):
    """They were texts, with marks where their position goes."""
    given = draft(event_factory(agent="50 %"))
    fields = dict(given.header.fields)
    marks = {"detail_commit": "%s", "log": '"%s"', "prev": '"%s"', "recorded_at": "%d"}
    marks |= {"seq": "%d", "tenant": "%s"}
    texts = {name: json.dumps(value).replace("%", "%%") for name, value in fields.items()}
    text = "{" + ",".join(f'"{name}":{each}' for name, each in (texts | marks).items()) + "}"
    kind, _fields, occurred_us, columns = given.header
    known = {
        "header": [kind, text, occurred_us, list(columns)],
        "usage": None,
        "writer": [given.writer_id, given.writer_seq],
        "detail": None,
        "aliases": None,
        "tenant": given.tenant,
        "run": given.run,
        "place": given.place,
        "memories": given.memories,
    }
    ring, marker = Keyring(subject_keys), new_marker()
    key = ring.current.key("audit/spool")
    written = ring.current_id.encode() + encrypted(key, json.dumps(known).encode(), _BOUND_TO)
    spool.write_bytes(header(_KIND, marker) + record(marker, written))
    read = []
    Spool(spool, ring, content=content_again).adopt(read.extend, print, print)

    place = {"detail_commit": None, "log": "", "prev": "", "recorded_at": 0, "seq": 0}
    place |= {"tenant": None}
    (back,) = read
    assert sealed(back.header.fields | place) == sealed(fields | place)
