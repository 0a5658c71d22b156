"""
The time that our exit handlers share.

Only what passes inside of them counts: other people's handlers run before, between and after ours,
and may take long themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

EXIT_DEADLINE_S = 1.65
"""Seconds for all handlers together. The interpreter's own end takes 0.3 where clients are loaded,
so a process is gone in 2."""

_spent_s = [0.0]
_began: list[float] = []
_sources: list[Callable[[float], None]] = []


@contextmanager
def exiting() -> Generator[None]:
    """Count the time of the body, which is one of our handlers."""
    _began.append(time.monotonic())
    try:
        yield
    finally:
        _spent_s[0] += time.monotonic() - _began.pop()


def is_exiting() -> bool:
    """Return whether one of our handlers runs now."""
    return bool(_began)


def before_delivery(end: Callable[[float], None]) -> None:
    """Have *end* called at exit before sinks deliver, with its seconds: it makes no event after."""
    _sources.append(end)


def end_sources(timeout_s: float) -> None:
    """Call what was given to `before_delivery`, within *timeout_s* seconds altogether."""
    until = time.monotonic() + timeout_s
    for end in _sources:
        end(max(0.0, until - time.monotonic()))


def remaining_s() -> float:
    """Return the seconds that are left."""
    now = time.monotonic()
    inside_s = now - _began[-1] if _began else 0.0
    return max(0.0, EXIT_DEADLINE_S - _spent_s[0] - inside_s)
