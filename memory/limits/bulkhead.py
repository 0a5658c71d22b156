"""
The bulkhead: a limit of the calls inside a store at once, hung ones included.

While the store answers, calls beyond the limit wait for a place, first come, first served. While it
gives no place back they are refused, so that a store that hangs holds up a bounded number of calls
for a bounded time.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from ...telemetry.process.fork import reset_after_fork

if TYPE_CHECKING:
    import asyncio  # where it runs, only in functions: a tenth of the time to configure a scope

MOST_WAITING = 10_000
"""Calls that may wait at once. Further ones are refused."""


class _Waiter:
    """
    A call that waits for a place, on a thread of its own.

    ``claim`` holds one token, and ``list.pop`` is atomic: whoever takes it, who gives the place or
    who gives up, decides whether the call has one.
    """

    __slots__ = ("_given", "claim")

    def __init__(self) -> None:
        self.claim = [True]
        self._given = threading.Lock()
        self._given.acquire()

    def wait(self, pause_s: float) -> bool:
        """Return whether a place was given within *pause_s* seconds."""
        return self._given.acquire(timeout=pause_s)

    def give(self) -> bool:
        """Give the place of the caller. False: nobody waits for it any more."""
        if not self.claimed():
            return False
        self._given.release()
        return True

    def claimed(self) -> bool:
        """Take the token. False: the other side has it."""
        try:
            return self.claim.pop()
        except IndexError:
            return False


class _LoopWaiter(_Waiter):
    """A call that waits for a place in an event loop."""

    __slots__ = ("_event", "_loop")

    def __init__(self, event: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
        self.claim = [True]
        self._event = event
        self._loop = loop

    def give(self) -> bool:
        """Give the place of the caller. False: nobody waits, or in a loop that has ended."""
        if not self.claimed():
            return False
        try:
            self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:
            return False
        return True


class Bulkhead:
    """
    The places in a store, and the calls that wait for one. Thread-safe.

    Without a lock: a signal handler or finaliser on the same thread could meet it half-way.

    Args:
        places: Calls that may be inside at once.
        wait_s: Seconds that calls wait while no place is given back. 0: they do not wait.
        clock: Monotonic seconds.
    """

    def __init__(
        self, places: int, wait_s: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._places = places
        self._wait_s = wait_s
        self._clock = clock
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin with nobody inside: the calls in flight are the parent's."""
        # A list of what is free, since its `pop` and `append` are atomic.
        self._free = [None] * self._places
        self._waiting: deque[_Waiter] = deque()
        self._full_since: float | None = None

    @property
    def in_flight(self) -> int:
        """Calls inside now."""
        return self._places - len(self._free)

    @property
    def waiting(self) -> int:
        """Calls that wait for a place now."""
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether all places are taken."""
        return not self._free

    def enter(self) -> bool:
        """Take a place, behind those who wait for one. False when there is none."""
        if self._waiting:
            return False
        try:
            self._free.pop()
        except IndexError:
            return False
        return True

    def leave(self) -> None:
        """Give the place back, when the store has really answered."""
        # In a child forked from inside a call there is nobody to count out.
        if len(self._free) < self._places:
            self._free.append(None)
            if self._waiting or self._full_since is not None:
                self._full_since = self._clock() if self._waiting else None
                self._hand_out()

    def wait(self, until: float) -> bool:
        """
        Take a place, and wait for it on this thread until *until*, in monotonic seconds.

        Returns:
            Whether there was one: not where the store gives none back for too long.
        """
        waiter = _Waiter()
        if not self._queued(waiter):
            return False
        try:
            for pause_s in self._pauses_s(until):
                if waiter.wait(pause_s):
                    return True
        except BaseException:
            self._gone(waiter)
            raise
        return not self._withdrawn(waiter)

    async def await_place(self, until: float) -> bool:
        """Take a place as `wait`, without blocking the event loop."""
        import asyncio  # noqa: PLC0415

        given = asyncio.Event()
        waiter = _LoopWaiter(given, asyncio.get_running_loop())
        if not self._queued(waiter):
            return False
        try:
            for pause_s in self._pauses_s(until):
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await given.wait()
                        return True
        except BaseException:
            self._gone(waiter)
            raise
        return not self._withdrawn(waiter)

    def _queued(self, waiter: _Waiter) -> bool:
        """Queue *waiter*, unless the queue is too long or gets no shorter."""
        now, since = self._clock(), self._full_since
        stalled = since is not None and now - since >= self._wait_s
        if not self._wait_s or stalled or len(self._waiting) >= MOST_WAITING:
            return False
        self._waiting.append(waiter)
        if self._full_since is None:
            self._full_since = now
        self._hand_out()  # a place that was given back since we looked
        return True

    def _pauses_s(self, until: float) -> Iterator[float]:
        """Yield the seconds to wait before the next look whether the store answers."""
        while True:
            since, now = self._full_since, self._clock()
            pause_s = min(until, (now if since is None else since) + self._wait_s) - now
            if pause_s <= 0:
                return
            yield pause_s
            if since is not None and self._full_since == since:
                return

    def _hand_out(self) -> None:
        """Give free places to those who wait. Whoever adds to either calls this afterwards."""
        while self._waiting:
            try:
                self._free.pop()
            except IndexError:
                return
            try:
                given = self._waiting.popleft().give()
            except IndexError:
                given = False
            if not given:
                self._free.append(None)

    def _withdrawn(self, waiter: _Waiter) -> bool:
        """Take *waiter* out of the queue. False: it was given a place at the last moment."""
        if not waiter.claimed():
            return False
        with suppress(ValueError):  # about to be passed over
            self._waiting.remove(waiter)
        return True

    def _gone(self, waiter: _Waiter) -> None:
        """Pass on the place of *waiter*, whose call does not want it any more."""
        if not self._withdrawn(waiter):
            self.leave()
