"""The verification of a log: what is in order, what is not, and what cannot be told."""

from __future__ import annotations

import shutil

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.proof.merkle import Frontier
from mnemoscope.audit.proof.note import Signer, checkpoint_text
from mnemoscope.audit.store import retention
from mnemoscope.audit.verification.whole import verify
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit import tampering
from tests.kit.elapsed_days import live

GAP = {"writer": "00000000000000aa", "from_wseq": 2, "to_wseq": 3, "count": 2, "reason": "full"}


@pytest.fixture
def log(tmp_path, subject_keys):
    log = AuditLog(tmp_path / "audit.db", subject_keys)
    yield log
    log.close()


def reopened(path, keys):
    """Return the log at *path*, after whoever holds it has let go."""
    return AuditLog(path, keys)


def test_a_log_in_order_says_so_in_a_line(log, event_factory):
    """Checkpoints, events and details, each with how many hold."""
    log.append([event_factory(), event_factory()])
    log.checkpoint_now()

    found = verify(log)
    assert found.state == "ok"
    assert found.verdict() == "1/1 checkpoints valid, 3/3 events valid, 2/2 details valid"
    assert found.signed == found.size == 3


@pytest.mark.parametrize("size", [127, 128, 200, 255, 256, 257, 512, 513])
def test_a_log_of_any_size_is_in_order(log, event_factory, size):
    """Around the borders of its tiles of 256."""
    opened = 1
    log.append([event_factory(writer_seq=n) for n in range(1, size - opened + 1)])
    log.checkpoint_now()
    found = verify(log)

    assert (found.size, found.state) == (size, "ok")


def test_declared_losses_are_told_and_are_no_tampering(log, event_factory):
    """A hole that the log declares: its size, and another state than in order."""
    log.append([event_factory(writer_seq=1), event_factory(writer_seq=4)])
    log.append_log_event("audit.gap", GAP)
    log.checkpoint_now()

    found = verify(log)
    assert found.state == "loss"
    assert (found.gaps, found.lost) == (1, 2)
    assert found.verdict().endswith("1 declared gaps (2 events)")


def test_a_gap_that_was_declared_twice_counts_once(log, event_factory):
    """A crash between declaring and forgetting declares again."""
    log.append([event_factory(writer_seq=1), event_factory(writer_seq=4)])
    log.append_log_event("audit.gap", GAP)
    log.append_log_event("audit.gap", GAP)
    log.checkpoint_now()

    assert verify(log).lost == 2


def test_what_was_declared_lost_and_came_after_all_is_not_lost(log, event_factory):
    """Late is not never."""
    log.append([event_factory(writer_seq=1), event_factory(writer_seq=4)])
    log.append_log_event("audit.gap", GAP)
    log.append([event_factory(writer_seq=2), event_factory(writer_seq=3)])
    log.checkpoint_now()

    found = verify(log)
    assert (found.state, found.lost) == ("ok", 0)


def test_a_hole_that_nobody_declared_is_said(log, event_factory):
    """It may be on its way, or lost: it cannot be told, and is no silence."""
    log.append([event_factory(writer_seq=1), event_factory(writer_seq=3)])
    log.checkpoint_now()

    found = verify(log)
    assert found.state == "unverifiable"
    assert "1 events of writer 00000000000000aa" in found.findings["unverifiable"][0]


def test_a_log_that_nothing_signs_cannot_be_vouched_for(log, event_factory):
    """Whoever wrote it may have written all of it anew."""
    log.append([event_factory()])
    with log.tables.writing() as (connection, _head):
        connection.execute("DELETE FROM audit_head")
    with log.tables.writing() as (connection, _head):
        connection.execute("DELETE FROM audit_head")

    found = verify(log)
    assert found.state == "unverifiable"
    assert (found.valid_events, found.events, found.signed) == (2, 2, 0)


def test_an_empty_log_is_in_order(log, event_factory):
    """There is nothing to doubt."""
    with log.tables.writing():
        pass
    log.checkpoint_now()

    assert verify(log).state == "ok"


def test_erasing_is_no_tampering(log, event_factory):
    """Headers, root and every proof hold; what is gone is counted as gone."""
    log.append([event_factory(), event_factory(customer="bob")])
    log.checkpoint_now()
    before = verify(log)
    uid = log.subjects.resolve("ada@example.com", "acme")
    log.subjects.erase(uid, "acme")
    log.checkpoint_now()

    after = verify(log)
    assert after.state == before.state == "ok"
    assert (after.details, after.erased) == (1, 1)


DAY_NS = 86_400_000_000_000


@pytest.mark.fault(79, "clock jumps by a day, both ways", expected="order by number, verified")
def test_clocks_that_jump_are_no_tampering(tmp_path, subject_keys, event_factory, seen):
    """What was recorded keeps its order; when it happened is as the caller's clock had it."""
    now_ns = 1_800_000_000_000_000_000
    clock = iter([now_ns, now_ns + DAY_NS, now_ns - DAY_NS, now_ns])
    log = AuditLog(tmp_path / "audit.db", subject_keys, clock_ns=lambda: at_ns)
    for number, at_ns in enumerate(clock):
        log.append([event_factory(run=str(number), started_ns=at_ns)])
    log.checkpoint_now()
    rows = list(log.rows())
    found = verify(log)
    state = found.state
    log.close()
    seen(f"{len(rows)} events in order, {state}")

    assert found.counts["tampered"] == 0
    assert [each.partition(" at ")[0] for each in found.findings["unverifiable"]] == [
        "the clock went back 2 days"
    ]
    assert [row.run for row in rows] == list("0123")
    assert [row.occurred_us - now_ns // 1_000 for row in rows] == [
        0,
        DAY_NS // 1_000,
        -DAY_NS // 1_000,
        0,
    ]
    assert [row.recorded_us for row in rows] == [row.occurred_us for row in rows]


def test_merged_customers_are_in_order(log, event_factory):
    """Two that became one keep both their details."""
    log.append([event_factory(), event_factory(customer="bob")])
    uids = [log.subjects.resolve(name, "acme") for name in ("ada@example.com", "bob")]
    log.subjects.merge(*uids)
    log.checkpoint_now()

    assert verify(log).state == "ok"


@pytest.mark.fault(81, "verified without the secret", expected="unverifiable, never in order")
def test_without_the_secret_the_events_are_still_checked(log, event_factory, tmp_path):
    """What cannot be opened is said, and is not called tampered."""
    log.append([event_factory()])
    log.checkpoint_now()
    log.close()

    stranger = reopened(tmp_path / "audit.db", SubjectKeys(b"another secret, not theirs"))
    found = verify(stranger)
    assert found.state == "unverifiable"
    assert (found.valid_events, found.details) == (2, 0)


def test_a_rotated_secret_keeps_old_checkpoints_valid(log, event_factory, tmp_path, subject_keys):
    """Its key is named in the log, and a checkpoint of today's covers it."""
    log.append([event_factory()])
    log.checkpoint_now()
    log.close()
    today = SubjectKeys(b"the secret of today, longer")
    rotated = AuditLog(tmp_path / "audit.db", today, previous=[subject_keys])
    rotated.append([event_factory()])
    rotated.checkpoint_now()
    rotated.close()

    assert verify(rotated).state == "ok"


def test_only_what_came_since_is_checked(log, event_factory):
    """From an event on, against the tree before it; and its checkpoints alone."""
    log.append([event_factory() for _ in range(300)])
    log.checkpoint_now()
    log.append([event_factory() for _ in range(10)])
    log.checkpoint_now()

    found = verify(log, since=301)
    assert found.state == "ok"
    assert (found.events, found.checkpoints, found.details) == (10, 2, 10)
    assert found.root == verify(log).root


@pytest.mark.parametrize("since", [-1, 3])
def test_there_is_nothing_beyond_the_end(log, event_factory, since):
    """A number that no event has, or will have next, is a mistake."""
    log.append([event_factory()])

    with pytest.raises(ValueError, match="there is none"):
        verify(log, since=since)


@pytest.mark.fault(80, "backup put back", expected="found by a checkpoint kept elsewhere")
def test_an_old_copy_that_was_put_back_is_found_by_a_checkpoint_kept_elsewhere(
    sealed, tmp_path, subject_keys, event_factory
):
    """In itself it is in order; only who kept a later checkpoint can tell."""
    old = tmp_path / "old.db"
    shutil.copyfile(sealed, old)
    log = reopened(sealed, subject_keys)
    log.append([event_factory(writer_seq=1_000)])
    note = log.checkpoint_now()
    log.close()

    restored = reopened(old, subject_keys)
    assert verify(restored).state == "loss"
    assert verify(restored, checkpoints=[note]).state == "tampered"
    assert "old copy" in verify(restored, checkpoints=[note]).findings["tampered"][0]


def test_another_history_is_found_by_a_checkpoint_kept_elsewhere(
    tmp_path, subject_keys, event_factory
):
    """Two heads that grew from one log: each is in order, and they are not the same."""
    log = reopened(tmp_path / "audit.db", subject_keys)
    log.append([event_factory()])
    log.checkpoint_now()
    log.close()
    shutil.copyfile(tmp_path / "audit.db", tmp_path / "fork.db")
    notes = []
    for name in ("audit.db", "fork.db"):
        branch = reopened(tmp_path / name, subject_keys)
        branch.append([event_factory(writer_seq=2)])
        notes.append(branch.checkpoint_now())
        branch.close()

    fork = reopened(tmp_path / "fork.db", subject_keys)
    assert verify(fork, checkpoints=[notes[1]]).state == "ok"
    assert verify(fork, checkpoints=[notes[0]]).state == "tampered"


@pytest.mark.parametrize("note", ["", "nonsense", "mnemoscope\n1\nAAAA\n\n— x AAAA\n"])
def test_what_is_no_checkpoint_vouches_for_nothing(log, event_factory, note):
    """A file that was mixed up does not pass for a proof."""
    log.append([event_factory()])
    log.checkpoint_now()

    assert verify(log, checkpoints=[note]).state == "tampered"


@pytest.mark.fault(80, "head rolled back", expected="found")
def test_a_head_that_was_rolled_back_is_found(copy, tamper, state):
    """With all its columns as they were: the events beyond it are still there."""
    (row,) = tamper.rows("SELECT leaf FROM audit_event WHERE seq = 99")
    leaves = [leaf for (leaf,) in tamper.rows("SELECT leaf FROM audit_event WHERE seq < 100")]
    frontier = Frontier()
    frontier.extend(leaves)
    tamper.run(
        "UPDATE audit_log SET size = 100, prev_leaf = ?, frontier = ?", row[0], frontier.to_bytes()
    )

    assert state() == "tampered"


@pytest.mark.fault(80, "log cut short", expected="found")
def test_a_log_that_was_cut_is_found_by_its_own_checkpoints(copy, tamper, state):
    """Events, details and head agree; the checkpoint remembers more of them."""
    leaves = [leaf for (leaf,) in tamper.rows("SELECT leaf FROM audit_event WHERE seq < 30")]
    frontier = Frontier()
    frontier.extend(leaves)
    for table in ("audit_event", "audit_detail", "audit_memory", "audit_usage"):
        tamper.run(f"DELETE FROM {table} WHERE seq >= 30")  # noqa: S608
    tamper.run("DELETE FROM audit_tile")
    tamper.run(
        "UPDATE audit_log SET size = 30, operations = 29, prev_leaf = ?, frontier = ?",
        leaves[-1],
        frontier.to_bytes(),
    )

    assert state() == "tampered"


def test_a_checkpoint_signed_by_somebody_else_is_found(copy, tamper, state):
    """Of the right size and root; but not the log's own signature."""
    ((origin,),) = tamper.rows("SELECT origin FROM audit_log")
    ((size, root),) = tamper.rows("SELECT size, root FROM audit_checkpoint ORDER BY size LIMIT 1")
    forger = Signer(origin, bytes(32))
    note = forger.sign(checkpoint_text(origin, size, root))
    tamper.run(
        "UPDATE audit_checkpoint SET note = ?, key_id = ? WHERE size = ?", note, forger.key_id, size
    )

    assert state() == "tampered"


def test_a_detail_that_nobody_erased_is_missed(tamper, state):
    """The log says of every detail that is gone that it is gone; of this one it does not."""
    tamper.run("DELETE FROM audit_memory WHERE seq = 10")
    tamper.run("DELETE FROM audit_detail WHERE seq = 10")

    assert state() == "tampered"


def test_the_findings_name_nobody(copy, tamper, subject_keys):
    """Numbers of events, not whom they are about or what they say."""
    for statement in ("UPDATE audit_detail SET salt = x'00'", "UPDATE audit_event SET store = 'x'"):
        tamper.run(statement)
    log = AuditLog(copy, subject_keys)
    found = verify(log)
    log.close()

    assert found.state == "tampered"
    text = str(found.as_document())
    assert not [word for word in ("ada@", "bob", "tea", "m-1") if word in text]


def test_progress_is_told_of_every_event_and_detail(sealed, subject_keys):
    """So that a bar ends where it should."""
    log = reopened(sealed, subject_keys)
    steps = []
    found = verify(log, progress=steps.append)

    assert sum(steps) == found.events + found.details


def test_the_list_of_tables_is_whole(tamper):
    """A table that is not swept is not proved."""
    found = tamper.rows("SELECT name FROM sqlite_master WHERE type = 'table'")

    assert {name for (name,) in found if name.startswith("audit_")} == set(tampering.TABLES)


@pytest.fixture
def pruned(tmp_path, subject_keys, event_factory):
    """Return a log whose first 256 events were removed in time, one erased customer among them."""
    now_s = [1_700_000_000]
    log = AuditLog(tmp_path / "pruned.db", subject_keys, clock_ns=lambda: now_s[0] * 10**9)
    log.append([event_factory() for _ in range(200)])
    log.append([event_factory(customer="eve") for _ in range(60)])
    log.checkpoint_now()
    log.subjects.erase(log.subjects.resolve("eve", "acme"), "acme")
    live(log, now_s, 500)
    log.append([event_factory() for _ in range(20)])
    log.prune()
    log.checkpoint_now()
    yield log
    log.close()


def test_retention_is_no_tampering(pruned):
    """What was removed is proved by what is left of it: every checkpoint and figure still holds."""
    found = verify(pruned)

    assert (found.state, found.since) == ("ok", 256)
    assert found.valid_checkpoints == found.checkpoints


def test_retention_in_many_steps_is_no_tampering(
    tmp_path, subject_keys, event_factory, monkeypatch, in_ranges
):
    """Also where a step has removed what earlier ones said, and somebody had been erased."""
    monkeypatch.setattr(retention, "_STEP", 256)
    now_s = [1_700_000_000]
    log = AuditLog(tmp_path / "steps.db", subject_keys, clock_ns=lambda: now_s[0] * 10**9)
    states, firsts = [], []
    for _year in range(3):
        log.append([event_factory() for _ in range(590)])
        log.append([event_factory(customer="eve") for _ in range(10)])
        log.subjects.erase(log.subjects.resolve("eve", "acme"), "acme")
        live(log, now_s, 500)
        log.prune()
        log.checkpoint_now()
        found = verify(log)
        states.append(found.state)
        firsts.append(found.since)
        assert in_ranges(log) == found.as_document()
    log.close()

    assert states == ["ok"] * 3
    assert firsts == [512, 1_024, 1_792]


def test_removing_more_than_retention_did_is_found(pruned, tmp_path, subject_keys):
    """A head that claims so, with the events gone."""
    pruned.close()
    copy = tampering.copy_of(pruned.path, tmp_path / "copy.db")
    tamper = tampering.Tampering(copy)
    tamper.run("DELETE FROM audit_detail WHERE seq < 260")
    tamper.run("DELETE FROM audit_memory WHERE seq < 260")
    tamper.run("DELETE FROM audit_event WHERE seq < 260")
    tamper.run("UPDATE audit_log SET first_seq = 260")
    tamper.close()

    log = AuditLog(copy, subject_keys)
    assert verify(log).state == "tampered"
    log.close()


@pytest.mark.parametrize("level", [0, 1])
def test_the_hashes_that_retention_leaves_are_checked(pruned, tmp_path, subject_keys, level):
    """They prove what is no longer there, and are all that does."""
    pruned.close()
    copy = tampering.copy_of(pruned.path, tmp_path / "copy.db")
    tamper = tampering.Tampering(copy)
    ((data,),) = tamper.rows("SELECT hash FROM audit_tile WHERE level = ?", level)
    changed = data[:-1] + bytes([data[-1] ^ 1])
    tamper.run("UPDATE audit_tile SET hash = ? WHERE level = ?", changed, level)
    tamper.close()

    log = AuditLog(copy, subject_keys)
    assert verify(log).state == "tampered"
    log.close()
