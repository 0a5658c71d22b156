"""The deciding of one approval by several processes, some of which are killed meanwhile."""

from __future__ import annotations

import multiprocessing
import os
import random
import warnings
from typing import Any

import pytest

from mnemoscope.adapters.deciding import decide, held_of
from mnemoscope.memory import Mnemoscope, load_settings, open_audit
from tests.kit.held_writes import Quarantine, held_write
from tests.kit.kills import said_by_killed

APPROVALS = 5
ROUNDS = 6


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))]
)
def settings(request, tmp_path):
    """The settings of an application, and of processes that decide beside it."""
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/audit.db" if is_sqlite else request.getfixturevalue("postgres_url")
    return {
        "audit_url": url,
        "audit_pseudonym_key": "ab" * 32,
        "audit_spool": tmp_path / "spool",
    }


@pytest.fixture
def approvals(settings):
    """Writes that wait."""
    known = load_settings(**settings, sinks="audit", pii_model="none")
    scope = Mnemoscope(known, rules=[Quarantine()])
    made = [held_write(scope, key=f"k{number}") for number in range(APPROVALS)]
    scope.close()
    return made


def decided(settings, approvals, choice):
    """Decide all of it one way, and yield of each what holds and whether it was this process."""
    log = open_audit(**settings)
    for approval in approvals:
        found = decide(log, approval, choice, by=f"{choice}@example.com")
        yield str(found.choice), found.is_first
    log.close()


def all_decided(settings, approvals, choice, together=lambda: None):
    """Return what `decided` yields, each of it begun *together* with another process."""
    found = []
    for each in approvals:
        together()
        found += decided(settings, [each], choice)
    return found


_TOGETHER: list[Any] = []


def at_once(*given):
    """Return `all_decided` of a process that waits for the other one before each."""
    return all_decided(*given, together=_TOGETHER[0].wait)


def decisions(settings):
    """Return how many decisions the trail has."""
    log = open_audit(**settings)
    found = sum(row.method == "approvals" for row in log.rows())
    log.close()
    return found


def test_two_processes_that_decide_at_once_are_told_one_decision(settings, approvals):
    """Whichever was first, and the other one that it was not; one is sealed."""
    processes = multiprocessing.get_context("fork")
    given = [(settings, approvals, each) for each in ("approve", "reject")]
    with warnings.catch_warnings(action="ignore"):  # threads of other tests are not theirs
        pool = processes.Pool(2, _TOGETHER.append, (processes.Barrier(2),))
    with pool:
        told = pool.starmap(at_once, given, chunksize=1)

    for (one, is_first), (other, is_also_first) in zip(*told, strict=True):
        assert one == other
        assert is_first != is_also_first
    assert decisions(settings) == APPROVALS


def test_whoever_read_before_another_decided_is_told_so(settings, approvals, monkeypatch):
    """What was read is old by the time that it is recorded: what is sealed counts."""
    log = open_audit(**settings)
    before = held_of(log, approvals[0])
    decide(log, approvals[0], "reject", by="ada")
    monkeypatch.setattr("mnemoscope.adapters.deciding.held_of", lambda *_given: before)
    found = decide(log, approvals[0], "approve", by="grace")
    log.close()

    assert (found.choice, found.is_first) == ("reject", False)
    assert decisions(settings) == 1


def test_whoever_comes_after_a_kill_has_the_mode_follow(settings, approvals, monkeypatch):
    """A decision was sealed, and its process was killed before the gate's mode was changed."""

    def killed(*_given):
        raise KeyboardInterrupt

    log = open_audit(**settings)
    monkeypatch.setattr("mnemoscope.adapters.deciding.change_mode", killed)
    with pytest.raises(KeyboardInterrupt):
        decide(log, approvals[0], "reject", by="ada")
    monkeypatch.setattr("mnemoscope.adapters.deciding.change_mode", lambda *_given: "auto")
    found = decide(log, approvals[0], "approve", by="grace")
    log.close()

    assert (found.choice, found.is_first, found.mode) == ("reject", False, "auto")


def test_a_process_that_is_killed_has_decided_or_has_not(settings, approvals):
    """SIGKILL at any moment: what it was told holds, and the next process decides the rest."""
    chance = random.Random(1)  # noqa: S311 - moments to be killed at

    def work(choice, pipe):
        for holds, is_first in decided(settings, approvals, choice):
            os.write(pipe, f"{holds} {int(is_first)}\n".encode())

    firsts = 0
    for _ in range(ROUNDS):
        said = said_by_killed(("approve",), work, chance.uniform(0.0, 0.05), is_begun=False)
        lines = said["approve"].decode().splitlines()
        firsts = max(firsts, len(lines))
        assert {line.split()[0] for line in lines} <= {"approve"}
    after = all_decided(settings, approvals, "reject")

    assert all(choice == "approve" and not is_first for choice, is_first in after[:firsts])
    assert all(is_first == (choice == "reject") for choice, is_first in after)
    assert decisions(settings) == APPROVALS


def test_a_decision_that_is_none_is_a_mistake(settings):
    """Whatever it is, nothing is read for it."""
    with pytest.raises(ValueError, match="perhaps"):
        decide(open_audit(**settings), "0" * 32, "perhaps", by="grace")
