"""The verification of a log by several processes: the same findings, whatever is in it."""

from __future__ import annotations

import os
from contextlib import nullcontext

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.proof.merkle import Frontier, subtrees
from mnemoscope.audit.verification import events, ranges, whole
from mnemoscope.audit.verification.events import Pass
from mnemoscope.audit.verification.tree import cut
from mnemoscope.memory.api import Usage
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit import tampering
from tests.kit.elapsed_days import live
from tests.kit.verified import verify

LEAVES = [bytes([each % 256]) * 32 for each in range(1_000)]


@pytest.fixture
def log(tmp_path, subject_keys):
    log = AuditLog(tmp_path / "audit.db", subject_keys)
    yield log
    log.close()


@pytest.fixture
def large(log, event_factory):
    """Return a log of several ranges and tiles: somebody erased, memories, model calls."""
    seen = {"memory_ids": ("m-1", "m-2"), "scores": (0.1, 0.2), "run": "r", "collection": "c"}
    for number in range(10):
        log.append([event_factory(**seen) for _ in range(60)])
        log.append([event_factory(customer="eve", usage=Usage(model="m", input_tokens=number))])
        log.checkpoint_now()
    log.subjects.erase(log.subjects.resolve("eve", "acme"), "acme")
    log.checkpoint_now()
    return log


@pytest.fixture
def given_up(monkeypatch):
    """Return what is added to whenever one pass over the log has to tell."""
    told = []
    original = whole.report_of

    def report_of(log, snapshot, asked, each=None):
        told.extend([] if each else [asked.since])
        return original(log, snapshot, asked, each)

    monkeypatch.setattr(whole, "report_of", report_of)
    return told


@pytest.mark.parametrize("options", [{}, {"since": 100}, {"since": 256}, {"with_details": False}])
def test_a_log_in_order_is_told_range_by_range(large, in_ranges, given_up, options):
    """All figures and the root are those of one pass, and none was needed."""
    found = in_ranges(large, **options)
    assert given_up == []

    assert found == verify(large, **options).as_document()
    assert found["state"] == "ok"


def test_a_checkpoint_from_elsewhere_is_held_against_the_tree(large, in_ranges, given_up):
    """Of a size in the middle of a range."""
    with large.reading() as snapshot:
        notes = [note for (note,) in snapshot.execute("SELECT note FROM audit_checkpoint")]

    found = in_ranges(large, checkpoints=notes[3:5])
    assert (found["state"], given_up) == ("ok", [])
    assert found == verify(large, checkpoints=notes[3:5]).as_document()


def test_losses_and_retention_are_told_alike(tmp_path, subject_keys, event_factory, in_ranges):
    """A declared gap whose ends are in two ranges, and events that were removed in time."""
    now_s = [1_700_000_000]
    log = AuditLog(tmp_path / "old.db", subject_keys, clock_ns=lambda: now_s[0] * 10**9)
    log.append([event_factory(writer_seq=number) for number in range(1, 301)])
    live(log, now_s, 500)
    log.append([event_factory(writer_seq=number) for number in range(311, 500)])
    gap = {"writer": "00000000000000aa", "from_wseq": 301, "to_wseq": 310, "count": 10}
    log.append_log_event("audit.gap", gap | {"reason": "full"})
    log.prune()
    log.checkpoint_now()
    found = in_ranges(log)
    log.close()

    assert (found["state"], found["gaps"]["events"], found["since"]) == ("loss", 10, 256)
    assert found == verify(log).as_document()


def test_the_ends_of_writers_are_told_alike(tmp_path, subject_keys, event_factory, in_ranges):
    """What a writer said first and last is in different ranges."""
    now_s = [1_700_000_000]
    log = AuditLog(tmp_path / "x.db", subject_keys, clock_ns=lambda: now_s[0] * 10**9)
    for name, number in (("writer.started", 1), ("writer.heartbeat", 2), ("writer.ended", 3)):
        for writer in ("a", "b", "c")[number - 1 :]:
            known = {"writer": writer, "counter": number, "at_most": 256, "mode": "fail_open"}
            log.append_log_event(name, known)
        log.append([event_factory() for _ in range(100)])
        now_s[0] += 3_600
    log.checkpoint_now()
    found = in_ranges(log)
    log.close()

    assert found["writers"] | {"silent": 2, "unknown": 1} == found["writers"]
    assert found == verify(log).as_document()


def test_time_that_runs_backwards_between_two_ranges_is_found(
    tmp_path, subject_keys, event_factory, in_ranges
):
    """By whoever sealed the events so: the first of a range is held against the one before it."""
    now_s = [1_700_000_000]
    log = AuditLog(tmp_path / "x.db", subject_keys, clock_ns=lambda: now_s[0] * 10**9)
    log.append([event_factory() for _ in range(63)])
    now_s[0] -= 60
    with log.tables.writing() as (connection, _head):
        connection.execute("UPDATE audit_log SET newest_us = 0")
    log.append([event_factory() for _ in range(80)])
    log.checkpoint_now()
    found = in_ranges(log)
    log.close()

    assert (
        "event 64 was recorded before the one before it" in found["findings"]["tampered"]["first"]
    )
    assert found == verify(log).as_document()


def test_without_the_secret_it_is_told_alike(large, in_ranges):
    """Unverifiable, never in order."""
    stranger = AuditLog(large.path, SubjectKeys(b"another secret, not theirs"))

    assert in_ranges(stranger) == verify(stranger).as_document()
    assert in_ranges(stranger)["state"] == "unverifiable"


def test_progress_is_told_once_of_what_is_checked_twice(large, in_ranges):
    """A range was in order, another is not: what one pass looks at again is not counted again."""
    copy = tampering.copy_of(large.path, large.path.with_name("copy.db"))
    tamper = tampering.Tampering(copy)
    tamper.run("UPDATE audit_event SET store = 'x' WHERE seq = 300")
    tamper.close()
    log = AuditLog(copy, large.ring.current)
    steps = []
    found = in_ranges(log, progress=steps.append)

    assert found["state"] == "tampered"
    assert sum(steps) == found["events"]["checked"] + found["details"]["checked"]


@pytest.mark.parametrize("change", ["erased", "pruned"])
def test_what_changed_while_it_was_read_is_told_by_one_moment(
    large, in_ranges, given_up, monkeypatch, change
):
    """A range that is read after somebody was erased is given up, not called tampered."""
    original = ranges.check_range

    def late(where, given):
        where = where._replace(moment=(where.moment[0], *CHANGED[change](where.moment)))
        return original(where, given)

    monkeypatch.setattr(ranges, "check_range", late)

    assert in_ranges(large)["state"] == "ok"
    assert given_up == [0]


CHANGED = {
    "erased": lambda moment: (moment[1] - 1, moment[2]),
    "pruned": lambda moment: (moment[1], moment[2] + 256),
}


@pytest.mark.long
def test_what_is_appended_meanwhile_is_not_looked_at(large, in_ranges, event_factory, monkeypatch):
    """Ranges see later moments than the whole, whose size counts."""
    original = ranges.check_range

    def meanwhile(where, given):
        large.append([event_factory(memory_ids=("m",), usage=Usage(model="m"))])
        return original(where, given)

    expected = verify(large).as_document()
    monkeypatch.setattr(ranges, "check_range", meanwhile)

    assert in_ranges(large) == expected


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.long
def test_processes_find_what_one_pass_does(large, monkeypatch, changed):
    """Two of them, each with a connection of its own."""
    copy = tampering.copy_of(large.path, large.path.with_name("copy.db"))
    if changed:
        tamper = tampering.Tampering(copy)
        tamper.run("UPDATE audit_detail SET salt = x'00' WHERE seq = 400")
        tamper.close()
    log = AuditLog(copy, large.ring.current)
    expected = verify(log).as_document()
    monkeypatch.setattr(whole, "LEAST", 1)

    assert verify(log, jobs=2).as_document() == expected
    assert expected["state"] == ("tampered" if changed else "ok")


def test_whatever_is_wrong_with_processes_is_not_wrong_with_the_log(large, in_ranges, monkeypatch):
    """Not even where it looks like what a changed row raises."""
    monkeypatch.setattr(whole, "processes", lambda _count: nullcontext(len))

    assert in_ranges(large)["state"] == "ok"


def test_a_process_that_ends_early_leaves_it_to_one_pass(large, in_ranges, given_up, monkeypatch):
    """Whatever ended it, the log is in order."""
    monkeypatch.setattr(whole, "processes", ranges.processes)
    monkeypatch.setattr(ranges, "_leave_interrupts", os.abort)

    assert in_ranges(large)["state"] == "ok"
    assert given_up == [0]


def test_a_machine_without_processes_is_told(large, in_ranges, monkeypatch):
    """One process does it all, and says why: no semaphores, for example."""
    reasons = []

    def none_to_be_had(*_given, **_options):
        raise OSError(38, "no semaphores here")

    monkeypatch.setattr(whole, "processes", ranges.processes)
    monkeypatch.setattr(ranges, "ProcessPoolExecutor", none_to_be_had)

    assert in_ranges(large, said=reasons.append)["state"] == "ok"
    assert reasons == ["verified again by one process: other processes could not be used (OSError)"]


def test_what_another_process_is_given_shows_no_key(large):
    """Keys that open details are in it, and in nothing that is printed of it."""
    secrets = large.ring.unwrapping()
    where = ranges.LogLocation(large.url, secrets, ("", 0, 0), 0, "", with_details=True)

    for keys in (key for _key_id, each in large.ring for key in [each.key("audit/kek")]):
        assert repr(keys) not in repr(where)
        assert keys.hex() not in repr(where)


def test_a_header_is_parsed_once_and_hashed_once(large, monkeypatch):
    """Of a log in order; those of events about the log itself, which are few, once more."""
    parsed, hashed = [], []

    def counting(found, original):
        def counted(given):
            found.append(given)
            return original(given)

        return counted

    monkeypatch.setattr(events, "_read", counting(parsed, events._read))
    monkeypatch.setattr(events, "sha256", counting(hashed, events.sha256))
    monkeypatch.setattr(Pass, "_leaf", None)
    found = verify(large, with_details=False)

    assert (found.state, len(parsed), len(hashed)) == ("ok", found.size, found.size)


@pytest.mark.parametrize("start", [0, 1, 255, 256, 300])
def test_subtrees_make_the_tree_that_leaves_do(start):
    """From any place on, and cut at any sizes."""
    expected = Frontier()
    tiles = expected.extend(LEAVES)
    for pieces in (
        subtrees(start, LEAVES[start:]),
        cut(start, LEAVES[start:], [start + 1, start + 257, 999]),
    ):
        frontier = Frontier()
        done = frontier.extend(LEAVES[:start])
        for each in pieces:
            done += frontier.graft(each)

        assert (frontier.to_bytes(), done) == (expected.to_bytes(), tiles)
