"""
Whoever may write to the database is found out: a sample of the sweep that `make audit-sweep` makes.

Here every column of every table is changed in some of its rows; there every byte of every row.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.kit import tampering

ROWS, BYTES = 3, 2


def sample(path):
    """Return some cells of each column, spread over its rows."""
    columns = defaultdict(list)
    for cell in tampering.cells(path):
        columns[cell.kind, cell.column].append(cell)
    for found in columns.values():
        yield from found[:: max(1, len(found) // ROWS)][:ROWS]


def some(flips):
    """Return some of the ways to change a value."""
    found = list(flips)
    return found[:: max(1, len(found) // BYTES)][:BYTES]


def test_an_untouched_copy_is_in_order(state):
    """The control: without it, everything below would be found in a log that is never in order."""
    assert state() == "ok"


@pytest.mark.fault(80, "a byte of any column changed", expected="found")
def test_every_column_is_covered(copy, tamper, state):
    """One byte of one value of one row: found out."""
    missed = set()
    for cell in list(sample(copy)):
        for value in some(tampering.flips(cell.value)):
            if not tamper.set(cell, value):
                continue
            if state() == "ok":
                missed.add((cell.kind, cell.column))
            tamper.put_back(cell, value)

    assert state() == "ok"
    assert not missed


@pytest.mark.parametrize("which", [0, 0.5, 1], ids=["first", "middle", "last"])
@pytest.mark.parametrize("table", sorted(tampering.TABLES))
@pytest.mark.fault(80, "a row removed", expected="found")
def test_a_row_that_is_gone_is_missed(tamper, state, table, which):
    """The first, one in the middle, or the last of any table."""
    key = tamper.key_of(table, which)
    tamper.delete(table, key)

    assert state() != "ok"


@pytest.mark.parametrize("table", ["audit_event", "audit_detail", "audit_memory", "audit_usage"])
def test_a_row_that_is_there_twice_is_found(tamper, state, table):
    """Behind the end, and in a place that was free."""
    key = tamper.key_of(table, 0.5)
    tamper.duplicate(table, key, tuple(each + 100_000 for each in key))

    assert state() == "tampered"


@pytest.mark.parametrize(
    "table", ["audit_event", "audit_detail", "audit_memory", "audit_usage", "audit_checkpoint"]
)
@pytest.mark.fault(80, "rows reordered", expected="found")
def test_rows_that_changed_places_are_found(tamper, state, table):
    """Two of them, each whole and good in the other's place."""
    tamper.swap(table, tamper.key_of(table, 0), tamper.key_of(table, 1))

    assert state() == "tampered"
