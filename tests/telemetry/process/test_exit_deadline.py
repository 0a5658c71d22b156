"""The time that our exit handlers share."""

from __future__ import annotations

import pytest

from mnemoscope.telemetry.process import exit_deadline
from mnemoscope.telemetry.process.exit_deadline import EXIT_DEADLINE_S, exiting, remaining_s


@pytest.fixture
def now(monkeypatch):
    """Return the time, of a process whose exit has not begun."""
    now = [100.0]
    monkeypatch.setattr(exit_deadline, "_spent_s", [0.0])
    monkeypatch.setattr(exit_deadline.time, "monotonic", lambda: now[0])
    return now


def test_what_one_handler_takes_the_next_has_not(now):
    """It runs inside of each of ours."""
    with exiting():
        now[0] += 1.25
        inside = remaining_s()
    with exiting():
        between = remaining_s()
        now[0] += 10

    assert (inside, between, remaining_s()) == (EXIT_DEADLINE_S - 1.25, EXIT_DEADLINE_S - 1.25, 0.0)


def test_the_handlers_of_others_take_none_of_it(now):
    """However long they are, and wherever they come between ours."""
    now[0] += 60
    with exiting():
        now[0] += 0.5
    now[0] += 60

    assert remaining_s() == EXIT_DEADLINE_S - 0.5
