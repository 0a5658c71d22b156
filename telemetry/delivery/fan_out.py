"""
The one queue that callers append to, which the lanes of a drain share out among themselves.

However many sinks there are, an event costs its caller one append and one look at a lock.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from .lane_stats import Weighed, taken_from

UNCOUNTED, LIGHT_BYTES = 32, 8_192
"""Events that wait at most until lanes count them, and what each of them weighs at most."""

UNSHARED, PATIENCE_S = 1_024, 0.1
"""Events that wait while one thread shares out, from which on others wait for it, and how long."""


class Follower(Protocol):
    """A lane, to the queue in front of it."""

    def follow(self, source: FanOut, /) -> None:
        """Take what is offered to *source*."""
        ...

    def take(self, weighed: Weighed, /) -> None:
        """Queue an event."""
        ...

    def notice(self) -> None:
        """Wake the lane's thread, so that it looks at its queue."""
        ...


class FanOut:
    """The queue in front of several lanes."""

    def __init__(self, lanes: Sequence[Follower]) -> None:
        self.lanes = lanes
        self.forked()
        for lane in lanes:
            lane.follow(self)

    def forked(self) -> None:
        """Start anew, also in a forked child."""
        self._offers: deque[Weighed] = deque()
        self._lock = threading.RLock()
        # Held while a lane may not have seen what comes next. `release` takes no second lock.
        self._unseen = threading.Lock()
        self._unseen.acquire()

    def offer(self, weighed: Weighed) -> None:
        """Queue an event for every lane. O(1), whatever their number."""
        offers = self._offers
        offers.append(weighed)  # atomic
        if self._unseen.locked() or len(offers) > UNCOUNTED or weighed[1] > LIGHT_BYTES:
            self._tell(at_once=weighed[1] > LIGHT_BYTES)

    @property
    def waiting(self) -> int:
        """Events that wait to be shared out."""
        return len(self._offers)

    def share_out(self) -> None:
        """Give every lane what was offered, in order. No lane's lock is held."""
        with self._lock:  # also where nothing waits: another thread may be at the last event
            self._share()

    def share_out_now(self) -> None:
        """
        Share out as `share_out` does, unless somebody does: a lane's lock may be held here.

        Where more is offered than is shared out meanwhile, whoever offers waits for a moment.
        """
        patience_s = PATIENCE_S if len(self._offers) > UNSHARED else 0.0
        if self._lock.acquire(timeout=patience_s):
            try:
                self._share()
            finally:
                self._lock.release()

    def await_offer(self) -> None:
        """Have the next offer rouse the lanes: one is about to look at what there is, and rest."""
        self._unseen.acquire(blocking=False)

    def _share(self) -> None:
        for weighed in taken_from(self._offers):
            for lane in self.lanes:
                lane.take(weighed)

    def _tell(self, *, at_once: bool) -> None:
        try:
            with contextlib.suppress(RuntimeError):  # somebody else tells them
                self._unseen.release()
            if at_once or len(self._offers) > UNCOUNTED:
                self.share_out_now()
            for lane in self.lanes:
                lane.notice()
        except BaseException:
            self.await_offer()  # an interrupt: the next offer tells the lanes
            raise
