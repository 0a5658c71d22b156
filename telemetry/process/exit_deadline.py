"""
The time that our exit handlers share.

Only what passes inside of them counts: other people's handlers run before, between and after ours,
and may take long themselves.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

EXIT_DEADLINE_S = 1.65
"""Seconds for all handlers together. The interpreter's own end takes 0.3 where clients are loaded,
so a process is gone in 2."""

_spent_s = [0.0]
_began: list[float] = []


@contextmanager
def exiting() -> Generator[None]:
    """Count the time of the body, which is one of our handlers."""
    _began.append(time.monotonic())
    try:
        yield
    finally:
        _spent_s[0] += time.monotonic() - _began.pop()


def remaining_s() -> float:
    """Return the seconds that are left."""
    now = time.monotonic()
    inside_s = now - _began[-1] if _began else 0.0
    return max(0.0, EXIT_DEADLINE_S - _spent_s[0] - inside_s)
