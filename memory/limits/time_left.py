"""
The time that a guarded call has left, for clients whose waits end with it.

A call of such a client stays on its caller's thread: its adapter says so by ``breaks_off``. Each
wait of the client is made no longer than `time_left_s`, and by the thread that makes the call, so
that no other thread ever ends anything of the client's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class _Here(threading.local):
    """The time at which the call on this thread is over, and the clock. None: it has no end."""

    until: float = 0.0
    clock: Callable[[], float] | None = None


_here = _Here()


def time_left_s() -> float | None:
    """
    Return the seconds, 0.0 or more, that the guarded call on this thread has left.

    None: the code that runs now is in no call that stays on its caller's thread.
    """
    clock = _here.clock
    return None if clock is None else max(0.0, _here.until - clock())


def sooner_s(timeout_s: float | None) -> float | None:
    """
    Return *timeout_s*, or what the call on this thread has left, if that is less.

    Raises:
        TimeoutError: Nothing is left.
    """
    left_s = time_left_s()
    if left_s is None:
        return timeout_s
    if left_s == 0.0:
        raise TimeoutError("the deadline of this call has passed")
    return left_s if timeout_s is None else min(timeout_s, left_s)


class TimeLimit:
    """
    The limit of one call on its caller's thread, from `begin` to `end`.

    Args:
        clock: Monotonic seconds.
        left_s: Seconds that the call may take.

    Attributes:
        until: When it is over, in seconds of *clock*. Not after the end of a call around it.
    """

    __slots__ = ("_around", "_clock", "until")

    def __init__(self, clock: Callable[[], float], left_s: float) -> None:
        self._clock = clock
        self._around = (_here.until, _here.clock)
        until = clock() + left_s
        self.until = until if _here.clock is None else min(until, _here.until)

    def begin(self) -> None:
        """Have `time_left_s` tell of this limit."""
        _here.until, _here.clock = self.until, self._clock

    def end(self) -> None:
        """Have `time_left_s` tell of the call around this one."""
        _here.until, _here.clock = self._around
