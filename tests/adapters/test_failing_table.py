"""What a host sees when a store raises, for every exception, store, class and kind of call."""

from __future__ import annotations

import pytest

from tests.kit.failing_table import (
    EXCEPTIONS,
    PAGE,
    SIGNALS,
    SUBJECTS,
    Cell,
    all_cells,
    with_tables,
)

# One process makes the table, not each of them.
pytestmark = [pytest.mark.xdist_group("failing table"), pytest.mark.long]

OPEN = frozenset({"recall", "remember"})


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    """Return how every call ended."""
    return all_cells()


def test_each_exception_is_tried_in_each_class_of_each_store(cells):
    """Three classes of each of the stores, sync and async, and one event for each call."""
    assert len(cells) == len(SUBJECTS) * 3 * (len(EXCEPTIONS) + len(SIGNALS))
    assert {each.status for each in cells} == {"degraded", "error", "cancelled"}


def test_no_exception_of_a_store_reaches_the_host_in_recalls_and_writes(cells):
    """Whatever its type: the host gets the neutral value, and the event says so."""
    ordinary = [each for each in cells if each.exception in EXCEPTIONS and each.op_class in OPEN]

    assert {each.status for each in ordinary} == {"degraded"}
    assert "raised" not in {each.host.partition(" ")[0] for each in ordinary}


def test_every_exception_reaches_the_host_where_nothing_may_be_made_up(cells):
    """Deletions, and reads and writes of checkpoints, raise what the store raised."""
    closed = [each for each in cells if each.exception in EXCEPTIONS and each.op_class not in OPEN]

    assert {(each.host, each.status) for each in closed} == {("raised unchanged", "error")}


def test_a_signal_is_no_failure(cells):
    """It passes, but for the exit that spaCy calls for inside mem0."""
    swallowed = {
        (each.store, each.exception)
        for each in cells
        if each.exception in SIGNALS and each.host != "raised unchanged"
    }

    assert swallowed == {("mem0", "`SystemExit`")}


def test_the_page_has_the_tables_of_today(cells):
    """`make failing-table` writes them."""
    text = PAGE.read_text("utf-8")

    assert text == with_tables(text, cells)
