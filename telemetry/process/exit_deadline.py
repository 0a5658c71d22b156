"""The deadline that all our exit handlers share."""

from __future__ import annotations

import time

EXIT_DEADLINE_S = 1.75
"""Seconds for all handlers together: with the interpreter's own end, a process is gone in 2."""

_until: list[float] = []


def remaining_s() -> float:
    """Return the seconds that are left. The first call starts the clock."""
    if not _until:
        _until.append(time.monotonic() + EXIT_DEADLINE_S)
    return max(0.0, _until[0] - time.monotonic())
