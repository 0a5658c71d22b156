"""Processes that are killed, in a few rounds: ``make audit-kills`` has a hundred of each."""

from __future__ import annotations

import os

import pytest

from mnemoscope.audit import AuditLog
from tests.kit.writer_kills import MODES, WriterTally, kill_writers, look

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

ROUNDS = 3


def found_in_order(tally):
    assert tally.acknowledged > 0
    assert tally.wrong == 0
    assert tally.killed == len(tally.by_writer)
    if tally.mode == "fail_open":
        assert tally.state == "loss"
    else:
        assert (tally.lost, tally.state) == (0, "ok")


@pytest.mark.fault(33, "SIGKILL, events queued or spooled", expected="none lost and unsaid")
@pytest.mark.parametrize("mode", MODES)
def test_sqlite(path, tmp_path, mode):
    """Every event whose call was over is in the log, or in a gap that it declares."""
    found_in_order(kill_writers(path, tmp_path / "spool", mode, ROUNDS, 0))


@pytest.mark.fault(33, "SIGKILL, events queued or spooled", expected="none lost and unsaid")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.xdist_group("postgres")
def test_postgresql(postgres_url, tmp_path, mode):
    """The same on a server."""
    found_in_order(kill_writers(postgres_url, tmp_path / "spool", mode, ROUNDS, 0))


def test_the_tally_sees_what_is_not_said(path, subject_keys, event_factory):
    """A loss that the log does not declare would be noticed."""
    log = AuditLog(path, subject_keys)
    log.append([event_factory(writer_seq=seq) for seq in (1, 2, 5)])
    gap = {"writer": "00000000000000aa", "from_wseq": 3, "to_wseq": 3, "count": 1, "reason": "full"}
    log.append_log_event("audit.gap", gap)
    log.close()
    tally = WriterTally(by_writer={"00000000000000aa": 6})
    look(path, tally)

    assert (tally.lost, tally.declared, tally.undeclared, tally.wrong) == (3, 1, 2, 3)
