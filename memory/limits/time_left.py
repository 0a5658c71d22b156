"""
The time that a guarded call has left, for clients whose waits end with it.

A call of such a client stays on its caller's thread: its adapter says so by ``breaks_off``. Each
wait is ended by the thread that waits, so that nobody else ever ends anything of the client's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class _Here(threading.local):
    """When the call on this thread is over, and by which clock. None: there is no such call."""

    limit: tuple[float, Callable[[], float]] | None = None


here = _Here()


def time_left_s() -> float | None:
    """Return the seconds that a guarded call on this thread has left. None: there is no such."""
    limit = here.limit
    return None if limit is None else max(0.0, limit[0] - limit[1]())


def sooner_s(timeout_s: float | None, late: type[Exception]) -> float | None:
    """Return *timeout_s*, or what the call has left, if that is less. Raises *late* for 0.0."""
    left_s = time_left_s()
    if left_s is None:
        return timeout_s
    if left_s == 0.0:
        raise late
    return left_s if timeout_s is None else min(timeout_s, left_s)
