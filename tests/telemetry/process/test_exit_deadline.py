"""The time that all exit handlers share."""

from __future__ import annotations

from mnemoscope.telemetry.process import exit_deadline


def test_one_clock_for_all(monkeypatch):
    """It starts with the first handler that asks; what that one takes, the next has not."""
    now = [100.0]
    monkeypatch.setattr(exit_deadline, "_until", [])
    monkeypatch.setattr(exit_deadline.time, "monotonic", lambda: now[0])
    first = exit_deadline.remaining_s()
    now[0] += 1.25
    second = exit_deadline.remaining_s()
    now[0] += 10

    assert (first, second, exit_deadline.remaining_s()) == (exit_deadline.EXIT_DEADLINE_S, 0.5, 0.0)
