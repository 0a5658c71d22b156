"""
Counting of our own errors, which are logged once a minute and never raised to the host.

A library that observes must fail open, and must not hide that it failed. Errors on the caller's own
thread cost the caller time: after too many of them in a window it stops observing (``tripped``) and
says so. Errors of sinks do not trip it: a dead sink is the concern of its own lane.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable

from ..text import code_class, recorded_name
from .fork import reset_after_fork

logger = logging.getLogger("mnemoscope")


def _one_line(record: logging.LogRecord) -> bool:
    """Make one line of valid text of a record: names and paths in it may hold anything."""
    # Formatted here: a line feed in an argument would otherwise come in behind this filter.
    record.msg, record.args = recorded_name(record.getMessage()), None
    return True


logger.addFilter(_one_line)

LOG_EVERY_S = 60.0


class Faults:
    """
    Counts of our own errors, by where they happened. Thread-safe.

    Args:
        limit: Errors that trip, within the window, after which `tripped` is true.
        window_s: Length of that window in seconds.
        clock: Monotonic seconds.

    Attributes:
        counts: Errors so far, by site.
        suspected: Enough errors have tripped it once: whether it is tripped is to be asked.
    """

    def __init__(
        self,
        *,
        limit: int = 100,
        window_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.suspected = False
        self._recent: deque[float] = deque(maxlen=limit)
        self._window_s = window_s
        self._clock = clock
        self._logged: dict[str, float] = {}
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Take a fresh lock in a child."""
        # Re-entrant: a finaliser or signal handler may fail while this thread counts.
        self._lock = threading.RLock()

    @property
    def tripped(self) -> bool:
        """True while so much of our own code fails that observing is switched off."""
        recent = self._recent
        # The deque holds as many as trip it: the oldest tells how long they took.
        if len(recent) < (recent.maxlen or 0):
            return False
        return self._clock() - recent[0] < self._window_s

    def count(self, site: str) -> None:
        """Count something lost at *site* that is no error of its own."""
        with self._lock:
            self.counts[site] += 1

    def note(self, site: str, exc: BaseException, *, trips: bool = False) -> None:
        """
        Count *exc* at *site*. Logs its type, never its message, which may quote the input.

        Args:
            site: Where it happened: a closed set, a metric label.
            exc: What happened.
            trips: Whether many of these should switch observing off.
        """
        now = self._clock()
        with self._lock:
            self.counts[site] += 1
            if trips:
                self._recent.append(now)
                self.suspected = len(self._recent) == self._recent.maxlen
        self._warn(
            site,
            now,
            f"mnemoscope failed in {site} ({code_class(type(exc)).__qualname__}, "
            f"{self.counts[site]} times so far); your code is not affected, its telemetry is "
            "incomplete",
        )
        if trips and self.tripped:
            self._warn(
                "tripped", now, "mnemoscope fails so often that it stops observing for a while"
            )

    def _warn(self, topic: str, now: float, message: str) -> None:
        with self._lock:
            if now - self._logged.get(topic, float("-inf")) < LOG_EVERY_S:
                return
            self._logged[topic] = now
        # The host's logging handlers are foreign code on the caller's thread.
        with contextlib.suppress(Exception):
            logger.warning("%s", message)
