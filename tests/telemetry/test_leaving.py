"""The time that all exit handlers share."""

from __future__ import annotations

from mnemoscope.telemetry import leaving


def test_one_clock_for_all(monkeypatch):
    """It starts with the first handler that asks; what that one takes, the next has not."""
    now = [100.0]
    monkeypatch.setattr(leaving, "_until", [])
    monkeypatch.setattr(leaving.time, "monotonic", lambda: now[0])
    first = leaving.left_s()
    now[0] += 1.25
    second = leaving.left_s()
    now[0] += 10

    assert (first, second, leaving.left_s()) == (leaving.LEAVING_S, 0.5, 0.0)
