"""What is too old is removed, and what was proved with it stays proved."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.proof.merkle import (
    Prover,
    root_of,
)
from mnemoscope.audit.proof.note import parse_checkpoint
from mnemoscope.audit.record.seals import sum_text
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.store.kept_rows import identities_sum
from mnemoscope.audit.store.retention import month_before
from mnemoscope.audit.verification.whole import verify
from mnemoscope.memory import ConfigurationError, load_settings
from mnemoscope.memory.api import Usage
from tests.kit.elapsed_days import live
from tests.kit.merkle_proofs import verify_consistency, verify_inclusion


def us(*date):
    return round(datetime(*date, tzinfo=UTC).timestamp() * 1e6)


class Calendar:
    """A wall clock that is set by hand."""

    def __init__(self):
        self.now_us = us(2026, 1, 10)

    def __call__(self):
        return self.now_us * 1_000


@pytest.fixture
def calendar():
    return Calendar()


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))]
)
def log(request, path, subject_keys, calendar):
    url = path if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    log = AuditLog(url, subject_keys, clock_ns=calendar, retention_days=200)
    yield log
    log.close()


@pytest.fixture
def aged(log, calendar, event_factory):
    """Return a log of a year, a batch and a checkpoint a month, and the checkpoints."""
    notes = []
    for month in range(1, 13):
        calendar.now_us = us(2026, month, 10)
        log.append([event_factory(memory_ids=("m",), usage=Usage(model="m")) for _ in range(300)])
        notes.append(parse_checkpoint(log.checkpoint_now()))
    return log, notes


def test_whole_months_are_removed(aged, calendar):
    """An event is kept for as long as was asked for, and until the end of that month at most."""
    log, _notes = aged
    calendar.now_us = us(2026, 12, 20)  # 200 days earlier it was June 3
    before = [row.recorded_us for row in log.rows()]
    removed = log.prune()

    kept = [row.recorded_us for row in log.rows()]
    assert 1_501 - 256 < removed <= 1_501
    assert removed % 256 == 0
    assert kept == before[len(before) - len(kept) :]
    assert us(2026, 6, 1) <= sorted(kept)[256] <= us(2026, 6, 11)
    assert log.prune() == 0
    assert log.count() == 3_600


def test_nothing_of_them_is_left_but_their_hashes(aged, path):
    """Details, memories, usage and headers are gone; queries do not stumble over it."""
    log, _notes = aged
    removed = log.prune()

    with log.reading() as snapshot:
        assert snapshot.first_seq == removed
        for table in ("audit_event", "audit_detail", "audit_memory", "audit_usage"):
            (oldest,) = snapshot.execute(f"SELECT min(seq) FROM {table}").fetchone()  # noqa: S608
            assert oldest >= removed
    assert len(list(log.history("ada@example.com", "acme"))) == len(list(log.rows()))
    assert len(list(log.rows(since_us=0))) == len(list(log.rows()))


def test_every_old_root_is_still_provable(aged):
    """Consistency between any two checkpoints, inclusion of any event, removed ones too."""
    log, notes = aged
    with log.hashes() as hashes:
        leaves = list(hashes.leaves(0, hashes.size))
    log.prune()

    with log.hashes() as hashes:
        assert list(hashes.leaves(0, len(leaves))) == leaves
        assert list(hashes.leaves(200, 1_900)) == leaves[200:1_900]
        for earlier, later in pairwise(notes):
            proof = Prover(hashes, later.size).consistency(earlier.size)
            assert verify_consistency(earlier.size, later.size, proof, earlier.root, later.root)
        prover = Prover(hashes, notes[-1].size)
        for seq in (0, 300, 1_400, 3_000):
            proof = prover.inclusion(seq)
            assert verify_inclusion(leaves[seq], seq, notes[-1].size, proof, notes[-1].root)


def test_it_is_an_event_that_says_what_went(aged):
    """Range, root, and the counts that what remains can be held against."""
    log, _notes = aged
    with log.hashes() as hashes:
        leaves = list(hashes.leaves(0, 1_024))
    newest_us = list(log.rows())[1_022].recorded_us
    with log.reading() as snapshot:
        identities = identities_sum(snapshot, snapshot.seals)  # all of them were seen early
    assert log.prune() == 1_024

    with log.reading() as snapshot:
        ((header,),) = snapshot.execute(
            "SELECT header FROM audit_event WHERE operation = 'retention.pruned'"
        ).fetchall()
    assert json.loads(header)["data"] == {
        "from_seq": 0,
        "to_seq": 1_023,
        "subtree_root": root_of(leaves).hex(),
        "n_details": 1_023,
        "n_operations": 1_023,
        "n_committed": 1_023,
        "n_gone": 0,
        "gone": "0" * 64,
        "identities": sum_text(identities),
        "newest_us": newest_us,
    }


def test_writing_goes_on_where_it_was(aged, event_factory):
    """Numbers, chain and tree continue as if nothing had been removed."""
    log, _notes = aged
    log.prune()
    log.append([event_factory()])
    claimed = parse_checkpoint(log.checkpoint_now())

    with log.hashes() as hashes:
        assert root_of(hashes.leaves(0, hashes.size)) == claimed.root


def test_the_sink_does_it_bit_by_bit(aged):
    """Once a day, a part at each beat, so that events do not wait for it."""
    log, _notes = aged
    now_s = [0.0]
    sink = AuditSink(log, checkpoint_every_s=1e9, clock=lambda: now_s[0])
    sink.probe()
    sink.beat()

    with log.reading() as snapshot:
        assert snapshot.first_seq == 1_024
    sink.close(1.0)


def test_what_is_not_old_cannot_be_deleted(path, subject_keys, event_factory):
    """The trigger lets go of what retention has given up, and of nothing else."""
    log = AuditLog(path, subject_keys)
    log.append([event_factory() for _ in range(300)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE audit_log SET first_seq = 256")
        connection.execute("DELETE FROM audit_event WHERE seq < 256")
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute("DELETE FROM audit_event WHERE seq = 256")
    log.close()


@pytest.mark.parametrize(
    ("now", "days", "begins"),
    [
        ((2026, 12, 20), 200, (2026, 6, 1)),
        ((2028, 3, 1), 1, (2028, 2, 1)),
        ((2026, 1, 1), 0, (2026, 1, 1)),
    ],
)
def test_months_begin_on_their_first(now, days, begins):
    """In UTC, leap years and turns of the year included."""
    assert month_before(us(*now), days) == us(*begins)


@pytest.mark.parametrize(("days", "allowed"), [(0, True), (182, False), (183, True)])
def test_six_months_are_the_least(days, allowed):
    """Unless nothing is ever removed."""
    if allowed:
        assert load_settings(audit_retention_days=days).audit_retention_days == days
    else:
        with pytest.raises(ConfigurationError, match="at least 183"):
            load_settings(audit_retention_days=days)


def test_a_reason_allows_fewer():
    """One line, that the controller answers for."""
    reason = "chats of a shop, no high-risk system"

    assert load_settings(audit_retention_days=90, audit_retention_reason=reason)
    for wrong in (" ", "two\nlines", "x" * 501):
        with pytest.raises(ConfigurationError):
            load_settings(audit_retention_days=90, audit_retention_reason=wrong)


def test_the_trail_has_the_reason(tmp_path, subject_keys, event_factory):
    """Whoever verifies with another setting is told how long they were kept, and why."""
    now_s = [1_700_000_000]
    reason = "chats of a shop, no high-risk system"
    log = AuditLog(
        tmp_path / "a.db",
        subject_keys,
        clock_ns=lambda: now_s[0] * 10**9,
        retention_days=30,
        retention_reason=reason,
    )
    log.append([event_factory() for _ in range(300)])
    live(log, now_s, 100)
    assert log.prune() == 256
    log.checkpoint_now()
    log.close()

    found = verify(AuditLog(tmp_path / "a.db", subject_keys))
    assert found.state == "ok"
    assert [(each["kept_days"], each["reason"]) for each in found.removals] == [(30, reason)]


@pytest.mark.parametrize(("days", "state"), [(30, "ok"), (400, "tampered")])
def test_what_was_removed_too_soon_is_found(tmp_path, subject_keys, event_factory, days, state):
    """Whoever had the key: nothing is removed sooner than a setting, or the least, allows."""
    now_s = [1_700_000_000]

    def clock_ns():
        return now_s[0] * 10**9

    log = AuditLog(tmp_path / "a.db", subject_keys, clock_ns=clock_ns, retention_days=30)
    log.append([event_factory() for _ in range(300)])
    live(log, now_s, 100)
    assert log.prune() == 256
    log.checkpoint_now()
    log.close()

    found = verify(AuditLog(tmp_path / "a.db", subject_keys, retention_days=days))
    assert found.state == state
    assert [each["events"] for each in found.removals] == [256]
    assert [each for each in found.findings["tampered"] if "not 183 days old" in each] == (
        [] if state == "ok" else found.findings["tampered"]
    )
