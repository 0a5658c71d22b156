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

    __slots__ = ("_giver", "_settled", "claim")

    def __init__(self) -> None:
        self.claim = [True]
        self._giver: Places | None = None
        self._settled = threading.Lock()
        self._settled.acquire()

    def wait(self, pause_s: float) -> bool:
        """Return whether a place was given within *pause_s* seconds."""
        if not self._settled.acquire(timeout=pause_s):
            return False
        self._settled.release()
        return True

    def give(self, giver: Places) -> bool:
        """Give a place of *giver*. False: nobody waits for it any more."""
        if not self.claimed():
            return False
        self._giver = giver
        self._settled.release()
        return True

    @property
    def giver(self) -> Places | None:
        """Whose place was given; another thread may be about to say so. Only once there is one."""
        with self._settled:
            return self._giver

    def claimed(self) -> bool:
        """Take the token. False: the other side has it."""
        try:
            return self.claim.pop()
        except IndexError:
            return False


class _LoopWaiter(_Waiter):
    """A call that waits for a place in an event loop, the one that runs on this thread."""

    __slots__ = ("_look", "_loop", "_thread")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._thread = threading.get_ident()
        self._look: asyncio.Future[None] = loop.create_future()

    async def await_place(self, pause_s: float) -> bool:
        """Return whether a place was given within *pause_s* seconds."""
        if self._look.done() and self._giver is None:
            self._look = self._loop.create_future()
        timer = self._loop.call_later(pause_s, self._end_look)
        try:
            await self._look
        finally:
            timer.cancel()
        return self._giver is not None

    def give(self, giver: Places) -> bool:
        """Give a place of *giver*. False: nobody waits, or in a loop that has ended."""
        if not super().give(giver):
            return False
        try:
            if threading.get_ident() == self._thread and self._is_awake():
                self._loop.call_soon(self._end_look)
            else:
                self._loop.call_soon_threadsafe(self._end_look)
        except RuntimeError:
            return False
        return True

    def _is_awake(self) -> bool:
        """Tell whether the loop runs a task now: it needs no byte through its socket then."""
        import asyncio  # noqa: PLC0415

        # In a signal's handler the loop may be asleep, and would sleep on.
        return asyncio.current_task(self._loop) is not None

    def _end_look(self) -> None:
        if not self._look.done():
            self._look.set_result(None)


class Places:
    """
    Places that calls take, and the calls that wait for one. Thread-safe.

    Without a lock: a signal handler or finaliser on the same thread could meet it half-way.

    Args:
        places: Calls that may have one at once.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        # A list of what is free, since its `pop` and `append` are atomic.
        self._free = [None] * places
        self.queue: deque[_Waiter] = deque()

    def enter(self) -> bool:
        """Take a place, behind those who wait for one. False when there is none."""
        # A newcomer who took a place that was just given back would starve those who wait.
        if self.queue:
            return False
        try:
            self._free.pop()
        except IndexError:
            return False
        return True

    def leave(self) -> None:
        """Give a place back."""
        self._free.append(None)
        self.hand_out()

    def hand_out(self) -> None:
        """Give free places to the calls in the queue. To be called after adding to either."""
        while self.queue:
            # A place first, then a waiter: one that is taken off the queue for a place that is not
            # there has lost its turn.
            try:
                self._free.pop()
            except IndexError:
                return
            try:
                given = self.queue.popleft().give(self)
            except IndexError:
                given = False
            if not given:
                self._free.append(None)


class Bulkhead(Places):
    """
    The places in a store, and the calls that wait for one.

    Args:
        places: Calls that may be inside at once.
        wait_s: Seconds that calls wait while no place is given back. 0: they do not wait.
        clock: Monotonic seconds.
    """

    def __init__(
        self, places: int, wait_s: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(places)
        self._wait_s = wait_s
        self._clock = clock
        self._full_since: float | None = None
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin with nobody inside: the calls in flight are the parent's."""
        super().__init__(self._places)
        self._full_since = None

    @property
    def in_flight(self) -> int:
        """Calls inside now."""
        return self._places - len(self._free)

    @property
    def waiting(self) -> int:
        """Calls that wait for a place now."""
        return len(self.queue)

    @property
    def is_full(self) -> bool:
        """Whether all places are taken."""
        return not self._free

    def leave(self) -> None:
        """Give the place back, when the store has really answered."""
        # In a child forked from inside a call there is nobody to count out.
        if len(self._free) < self._places:
            self._free.append(None)
            if self.queue or self._full_since is not None:
                self.note_answer()
                self.hand_out()

    def note_answer(self) -> None:
        """Note that the store answered: calls that wait may wait on."""
        self._full_since = self._clock() if self.queue else None

    def wait(self, until: float, beside: Places | None = None) -> Places | None:
        """
        Take a place, and wait for it on this thread until *until*, in monotonic seconds.

        Returns:
            Where the place is. None: there was none, or the store gives none back for too long.
        """
        waiter = _Waiter()
        if not self._queued(waiter, beside):
            return None
        try:
            for pause_s in self._pauses_s(until):
                if waiter.wait(pause_s):
                    break
        except BaseException:
            self._gone(waiter, beside)
            raise
        return self._withdraw(waiter, beside)

    async def await_place(self, until: float, beside: Places | None = None) -> Places | None:
        """Take a place as `wait`, without blocking the event loop."""
        import asyncio  # noqa: PLC0415

        waiter = _LoopWaiter(asyncio.get_running_loop())
        if not self._queued(waiter, beside):
            return None
        try:
            for pause_s in self._pauses_s(until):
                if await waiter.await_place(pause_s):
                    break
        except BaseException:
            self._gone(waiter, beside)
            raise
        return self._withdraw(waiter, beside)

    def _queued(self, waiter: _Waiter, beside: Places | None = None) -> bool:
        """Queue *waiter*, unless the queue is too long or gets no shorter."""
        now, since = self._clock(), self._full_since
        stalled = since is not None and now - since >= self._wait_s
        if not self._wait_s or stalled or len(self.queue) >= MOST_WAITING:
            return False
        self.queue.append(waiter)
        if self._full_since is None:
            self._full_since = now
        self.hand_out()  # a place that was given back since we looked
        if beside is not None:
            beside.queue.append(waiter)
            beside.hand_out()
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

    def _withdraw(self, waiter: _Waiter, beside: Places | None) -> Places | None:
        """Take *waiter* out of where it waits still, and return whose place it was given."""
        gave_up = waiter.claimed()
        for places in (self, beside) if gave_up or beside is not None else ():
            with suppress(ValueError):  # it was given one from here, or is about to be passed over
                if places is not None:
                    places.queue.remove(waiter)
        return None if gave_up else waiter.giver

    def _gone(self, waiter: _Waiter, beside: Places | None) -> None:
        """Pass on the place of *waiter*, whose call does not want it any more."""
        if (giver := self._withdraw(waiter, beside)) is not None:
            giver.leave()
