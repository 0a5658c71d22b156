"""How long our exit handlers may still hold the process: one clock for all of them."""

from __future__ import annotations

import time

LEAVING_S = 1.75
"""Seconds for all handlers together: with the interpreter's own end, a process is gone in 2."""

_until: list[float] = []


def left_s() -> float:
    """Return the seconds that are left. The clock starts with the first handler that asks."""
    if not _until:
        _until.append(time.monotonic() + LEAVING_S)
    return max(0.0, _until[0] - time.monotonic())
