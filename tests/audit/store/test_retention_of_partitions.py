"""Retention in a partitioned log: partitions are dropped, and what was proved stays proved."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import psycopg
import pytest

from mnemoscope.audit import AuditError, AuditLog
from mnemoscope.memory.api import Usage
from tests.audit.store.test_retention import AuditSink
from tests.kit.writer_kills import verify

pytestmark = pytest.mark.xdist_group("postgres")

DAY_US = 86_400_000_000
SMALL = 512


class Calendar:
    """A wall clock that is set by hand."""

    def __init__(self):
        self.now_us = round(datetime(2026, 1, 10, tzinfo=UTC).timestamp() * 1e6)

    def __call__(self):
        return self.now_us * 1_000


@pytest.fixture
def calendar():
    return Calendar()


@pytest.fixture
def log(postgres_url, subject_keys, calendar, monkeypatch):
    """Return a log of partitions of two tiles."""
    monkeypatch.setattr("mnemoscope.audit.database.postgres_partitions.LEAST_EVENTS", SMALL)
    log = AuditLog(postgres_url, subject_keys, clock_ns=calendar, retention_days=200)
    yield log
    log.close()


@pytest.fixture
def aged(log, calendar, event_factory):
    """Return a log of a year, in which a partition is of two weeks, and a checkpoint of each."""
    notes = []
    for day in range(0, 360, 3):
        calendar.now_us += 3 * DAY_US
        customer = "eve" if day == 9 else "ada@example.com"
        usage = Usage(model="m")
        log.append(
            [event_factory(customer=customer, memory_ids=("m",), usage=usage) for _ in range(100)]
        )
        if not day % 30:
            notes.append(log.checkpoint_now())
    return log, notes


def parts(log):
    with log.reading() as snapshot:
        found = snapshot.connection.partitions()
    return [(each.first, each.stop) for each in found if each.table == "audit_event"]


def removals(log):
    return [each for each in verify(log).removals if each["name"] == "retention.pruned"]


def test_partitions_go_as_a_whole(aged, calendar):
    """With all events older than was asked for; none is deleted, and none is older by a month."""
    log, notes = aged
    before = parts(log)
    removed = log.prune()
    kept = [row.recorded_us for row in log.rows()]
    age_days = (calendar.now_us - min(kept)) / DAY_US

    assert removed in [stop for _first, stop in before]
    assert parts(log) == [each for each in before if each[0] >= removed]
    assert 200 <= age_days <= 231
    assert log.prune() == 0
    found = verify(log, checkpoints=notes)
    assert (found.state, found.findings["tampered"]) == ("ok", [])
    assert log.count() == 12_000


def test_each_goes_when_all_of_it_is_old_enough(aged, calendar, event_factory):
    """Day by day: none sooner, and no row of one that goes soon."""
    log, _notes = aged
    log.prune()
    with log.reading() as snapshot:
        found = snapshot.execute("SELECT seq, recorded_us FROM audit_event").fetchall()
    times, firsts = dict(found), {first for first, _stop in parts(log)}
    for _ in range(6):
        calendar.now_us += 4 * DAY_US
        log.append([event_factory()])
        if log.prune(at_once=False):
            with log.reading() as snapshot:
                first = snapshot.first_seq
            assert first in firsts
            assert calendar.now_us - times[first - 1] >= 200 * DAY_US


@pytest.mark.long
def test_the_log_says_what_went(aged):
    """One event for each partition, with the root of its leaves."""
    log, _notes = aged
    before = parts(log)
    removed = log.prune()

    gone = [stop - first for first, stop in before if stop <= removed]
    assert [each["events"] for each in removals(log)] == gone


def test_space_is_given_back_at_once(aged, postgres_url):
    """To the disk, by the transaction itself."""
    log, _notes = aged
    size = (
        "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
        "WHERE relkind = 'r' AND relname ~ '^audit_(event|detail|memory|usage)'"
    )
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        before = connection.execute(size).fetchone()[0]
        while log.prune(at_once=False):
            pass  # in steps, as a process at work does it, and without a VACUUM
        after = connection.execute(size).fetchone()[0]

    assert after < before * 3 // 4


@pytest.mark.long
def test_whoever_is_erased_meanwhile_is_not_counted_twice(aged):
    """An erasure between what was read and the drop has it looked at once more."""
    log, _notes = aged
    log.prune(at_once=False)
    uid = log.subjects.resolve("eve", "acme")
    first = parts(log)[0]
    assert log.tables.removal is None or log.tables.removal.start == first[0]
    log.subjects.erase(uid, "acme")
    log.prune()

    assert (verify(log).state, verify(log).findings["tampered"]) == ("ok", [])


@pytest.mark.long
def test_an_erasure_right_before_the_drop(aged, monkeypatch):
    """It was counted with the details that are there, and they are not."""
    log, _notes = aged
    before = parts(log)
    real = log.tables.writing
    calls = []

    def writing():
        calls.append(1)
        if len(calls) == 2:
            monkeypatch.setattr(log.tables, "writing", real)
            log.subjects.erase(log.subjects.resolve("eve", "acme"), "acme")
        return real()

    monkeypatch.setattr(log.tables, "writing", writing)
    log.prune(at_once=False)
    between = parts(log)
    log.prune()

    assert between == before
    assert (verify(log).state, verify(log).findings["tampered"]) == ("ok", [])


@pytest.mark.long
def test_a_process_that_dies_between_leaves_a_log_in_order(aged, postgres_url, subject_keys):
    """Leaves that are kept already are those of their events; the next process goes on."""
    log, notes = aged
    known = []

    def no_more(*_args):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log.tables, "note", no_more)
        with pytest.raises(KeyboardInterrupt):
            log.prune()
    known.append(verify(log, checkpoints=notes))
    log.tables.removal = None
    removed = log.prune()
    known.append(verify(log, checkpoints=notes))

    assert [each.state for each in known] == ["ok", "ok"]
    assert removed > 0


@pytest.mark.long
def test_leaves_that_could_not_be_kept_are_read_again(aged, monkeypatch):
    """A database that is away for a moment leaves no hole in what was proved."""
    log, notes = aged
    monkeypatch.setattr("mnemoscope.audit.store.retention._STEP", 256)

    def away():
        raise AuditError("is away")

    with monkeypatch.context() as patch:
        patch.setattr(log.tables, "writing", away)
        with pytest.raises(AuditError):
            log.prune(at_once=False)
    log.prune()

    assert (verify(log, checkpoints=notes).state, parts(log)[0][0] > 0) == ("ok", True)


@pytest.mark.long
def test_leaves_that_are_none_show(aged, postgres_url):
    """What is kept before a drop is held against the events."""
    log, _notes = aged
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("INSERT INTO audit_tile VALUES (0, 0, %s)", (bytes(256 * 32),))

    assert verify(log).findings["tampered"] == [
        "the number of tiles does not fit the number of events"
    ]


@pytest.mark.long
def test_a_reader_holds_what_it_reads(aged):
    """A moment that was begun before keeps all its events; the drop is tried again."""
    log, _notes = aged
    with log.reading() as snapshot:
        began = time.monotonic()
        with pytest.raises(AuditError, match="locked by another process"):
            log.prune()
        waited_s = time.monotonic() - began
        (count,) = snapshot.execute("SELECT count(*) FROM audit_event").fetchone()
        assert count == snapshot.size
    assert waited_s < 5
    assert log.prune() > 0
    assert verify(log).state == "ok"


def test_a_process_at_work_goes_on_without(aged, caplog):
    """The trail is not taken to be away: what goes by age goes another day."""
    log, _notes = aged
    now_s = [0.0]
    sink = AuditSink(log, checkpoint_every_s=1e9, clock=lambda: now_s[0])
    sink.probe()
    with log.reading():
        sink.beat()
    before = parts(log)[0][0]
    now_s[0] += 86_401
    sink.beat()
    sink.close(1.0)

    assert (before, parts(log)[0][0] > 0) == (0, True)
    assert "nothing is removed by age today" in caplog.text


def test_a_clock_ahead_drops_nothing(log, calendar, event_factory):
    """Whatever it says, and however many partitions were made by it."""
    for _ in range(30):
        log.append([event_factory() for _ in range(100)])
    calendar.now_us += 500 * DAY_US
    for _ in range(30):
        log.append([event_factory() for _ in range(100)])
    ahead = log.prune()
    calendar.now_us -= 500 * DAY_US
    for _ in range(30):
        log.append([event_factory() for _ in range(100)])

    assert (ahead, log.prune()) == (0, 0)
    assert parts(log)[0][0] == 0
    assert verify(log).findings["tampered"] == []


def test_rows_go_from_a_partition_of_more_than_a_month(log, calendar, event_factory):
    """Where little happens, a partition is of years, and nothing is kept for that."""
    for _ in range(12):
        calendar.now_us += 30 * DAY_US
        log.append([event_factory() for _ in range(80)])
    removed = log.prune()

    assert removed == 256
    assert parts(log)[0][0] == 0
    assert verify(log).state == "ok"
