"""Fault 85: processes that share a write journal and are killed at any moment."""

from __future__ import annotations

import os

import pytest

from tests.kit.journal_kills import Store, Tally, look, run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


@pytest.mark.fault(
    85, "four processes on one journal killed", expected="nothing lost, twice, out of order, undone"
)
def test_what_was_acknowledged_is_there_once_and_in_order(tmp_path, seen, full):
    """Whenever they are killed, and though their store is down for a third of the time."""
    tally = run(tmp_path, 100 if full else 4)
    seen(f"{tally.rounds} kills, {tally.acknowledged:,} writes acknowledged, {tally.wrong} wrong")

    assert tally.acknowledged > 0
    assert not tally.wrong, tally


def test_the_tally_sees_what_is_wrong(tmp_path):
    """A loss, a double, a break of order and an undone deletion would be noticed."""
    store = Store(tmp_path / "store", fails=False)
    store.create()
    for number in (2, 1, 1):
        store.add("w", number, "")
    store.put("w", 3)
    store.put("v", 6)
    said = {"w": [("a", 1), ("a", 5), ("p", 3), ("b", 4), ("f", 4)], "v": [("p", 6), ("p", 7)]}
    tally = Tally(by_writer=said)
    look(store, tally)

    assert (tally.lost, tally.twice, tally.disordered, tally.undone) == (1, 1, 2, 1)
