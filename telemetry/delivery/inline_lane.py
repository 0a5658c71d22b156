"""The lane of a sink that takes events where they are made: books, and no queue or thread."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress

from ..process.faults import Faults
from ..text import code_class
from .acknowledged import Acknowledged
from .lane_stats import FlushRequest, LaneStats, Weighed
from .sink import InlineSink, RestingSink

_RETRY_S = 0.05


class InlineLane:
    """
    The lane of one sink that takes events inline.

    Args:
        faults: Where its errors are noted.
        clock: Monotonic seconds.

    Attributes:
        acknowledged: Nothing: who receives what it takes is told by those that deliver it.
    """

    def __init__(
        self,
        sink: InlineSink,
        sink_name: str,
        faults: Faults,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink = sink
        self.sink_name = sink_name
        self._faults = faults
        self._clock = clock
        self.acknowledged = Acknowledged()
        self.forked()

    def forked(self) -> None:
        """Start anew, also in a forked child."""
        self._lock = threading.RLock()
        self._offered = 0
        self._dropped: Counter[str] = Counter()
        self._lost_before_flush = 0
        self._is_closed = False
        self._last_error: str | None = None
        self.acknowledged.forked()

    @property
    def stats(self) -> LaneStats:
        """The counters, as of now."""
        with self._lock:
            delivered = self._offered - sum(self._dropped.values())
            dropped = dict(self._dropped)
            return LaneStats(
                self.sink_name, self._offered, delivered, dropped, 0, 0, self._last_error
            )

    def is_idle(self) -> bool:
        """Return True: nothing ever waits here."""
        return True

    def is_alive(self) -> bool:
        """Return False: there is no thread."""
        return False

    def is_up(self) -> bool:
        """Return True: what delivers the events knows more."""
        return True

    def is_closing(self) -> bool:
        """Return whether it takes no more events."""
        return self._is_closed

    def offer(self, weighed: Weighed) -> None:
        """Hand an event to the sink."""
        reason = "closed" if self._is_closed else self._taken(weighed)
        with self._lock:
            self._offered += 1
            if reason is not None:
                self._dropped[reason] += 1

    def offer_all(self, offers: Iterable[Weighed]) -> FlushRequest:
        """Hand events to the sink."""
        for each in offers:
            self.offer(each)
        return self.flush(0.0)

    def _taken(self, weighed: Weighed) -> str | None:
        try:
            return self._sink.take(weighed[0])
        except Exception as exc:  # noqa: BLE001 - a sink may fail in any way
            self._note(exc)
            return "error"

    def settle(self, deadline: float) -> FlushRequest:
        """Have everything so far on a disk: wait for one that has no room until *deadline*."""
        while True:
            try:
                self._sink.sync()
            except Exception as exc:  # noqa: BLE001 - as above
                self._note(exc)
                if self._clock() >= deadline:
                    return FlushRequest(self._offered, deadline, threading.Event())
                time.sleep(_RETRY_S)
            else:
                return self.flush(deadline)

    def flush(self, deadline: float, *, rests: bool = False, flushes: bool = True) -> FlushRequest:
        """Return whether everything so far was taken; *rests*: have the sink note an end."""
        del flushes  # nothing is buffered
        if rests and isinstance(self._sink, RestingSink):
            try:
                self._sink.rest()
            except Exception as exc:  # noqa: BLE001 - as above
                self._note(exc)
        request = FlushRequest(self._offered, deadline, threading.Event())
        with self._lock:
            lost = sum(self._dropped.values())
            request.complete = lost == self._lost_before_flush
            self._lost_before_flush = lost
        request.done.set()
        return request

    def close(self, deadline: float) -> None:
        """Take no more events, and let the sink go by *deadline*."""
        if self._is_closed:
            return
        self._is_closed = True
        with suppress(Exception):
            self._sink.close(max(0.0, deadline - self._clock()))

    def join(self, _deadline: float) -> None:
        """Return at once: there is no thread."""

    def _note(self, exc: Exception) -> None:
        self._last_error = code_class(type(exc)).__qualname__
        self._faults.note(f"sink.{self.sink_name}", exc)
