"""Processes that are killed, in a few rounds: ``make audit-kills`` has a hundred of each."""

from __future__ import annotations

import os

import pytest
from writer_kills import MODES, kill_writers

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

ROUNDS = 3


def found_in_order(tally):
    assert tally.acknowledged > 0
    assert tally.wrong == 0
    assert tally.killed == len(tally.by_writer)
    if tally.mode == "fail_open":
        assert tally.state == "loss"
    else:
        assert tally.lost == 0


@pytest.mark.parametrize("mode", MODES)
def test_sqlite(path, tmp_path, mode):
    """Every event whose call was over is in the log, or in a gap that it declares."""
    found_in_order(kill_writers(path, tmp_path / "spool", mode, ROUNDS, 0))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.xdist_group("postgres")
def test_postgresql(postgres_url, tmp_path, mode):
    """The same on a server."""
    found_in_order(kill_writers(postgres_url, tmp_path / "spool", mode, ROUNDS, 0))
