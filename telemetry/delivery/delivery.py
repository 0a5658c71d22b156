"""
Delivery of batches to one sink, with retries, pauses and splitting.

There are four kinds of failure. A back end that is unavailable: the batch is kept and retried,
less and less often. A back end that refuses the content of a batch: the batch is halved until the
event at fault stands alone, and only that is lost. One that took a part of it: the rest is counted.
Any other failure: a fixed number of attempts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

from ..event.event import Event
from .acknowledged import Acknowledged
from .lane_stats import LaneLimits
from .sink import PartialError, Sink, UnacceptableError, UnavailableError

RETRY_AFTER_MOST_S = 300.0
"""Longest time that a back end may ask to be left alone, in seconds."""

SPLITS = 64
"""Halvings of one batch. A back end that refuses everything is not asked about each event."""

DELIVERED = "delivered"


class Delivery:
    """
    Writes batches to a sink and decides on retries. Called on the lane's thread only.

    Args:
        sink: Where batches go.
        attempt: Runs a step and returns what it raised, noted, or None.
        pause: Waits so many seconds, or shorter where somebody waits for the sink.
        is_closing: Whether the time for pauses is over.
        keep: Keeps, on a disk, what the sink did not take. Returns whether it does.

    Attributes:
        is_up: False while the back end takes nothing.
    """

    def __init__(
        self,
        sink: Sink,
        limits: LaneLimits,
        *,
        attempt: Callable[[Callable[[], object]], BaseException | None],
        pause: Callable[[float], None],
        is_closing: Callable[[], bool],
        acknowledged: Acknowledged | None = None,
        keep: Callable[[Sequence[Event]], bool] = lambda _batch: False,
    ) -> None:
        self._sink = sink
        self._limits = limits
        self._attempt = attempt
        self._pause = pause
        self._is_closing = is_closing
        self._acknowledged = acknowledged
        self._keep = keep
        self._random = random.Random()  # noqa: S311 - spreads pauses; the host's generator is its own
        self.is_up = True

    def deliver(self, batch: Sequence[Event]) -> Counter[str]:
        """Return how many of *batch* were `DELIVERED`, and how many lost, by reason."""
        outcome: Counter[str] = Counter()
        parts, splits = [batch], 0
        while parts:
            part = parts.pop()
            error = self._write(part)
            # One event that a back end refuses must not take its batch with it.
            if isinstance(error, UnacceptableError) and len(part) > 1 and splits < SPLITS:
                middle = len(part) // 2
                parts += (part[middle:], part[:middle])
                splits += 1
            else:
                if isinstance(error, PartialError):
                    outcome["refused"] += (refused := min(error.refused, len(part)))
                    outcome[DELIVERED] -= refused
                    error = None  # of the rest
                outcome[self._result(part, error)] += len(part)
                if error is None and self._acknowledged is not None:
                    self._acknowledged.add(part)
        return outcome

    def _write(self, batch: Sequence[Event]) -> BaseException | None:
        """Write *batch*, with retries; return the last error, or None."""
        failures = 0
        while True:
            error = self._attempt(lambda: self._sink.write(batch))
            self.is_up = not isinstance(error, UnavailableError)
            failures += 1
            if error is None or self._gives_up(error, failures):
                return error
            self._pause(self._pause_s(error, failures))

    def _gives_up(self, error: BaseException, failures: int) -> bool:
        if self._is_closing() or not self._sink.idempotent:
            return True
        if isinstance(error, UnavailableError):
            # An outage is waited out: the queue in front of it decides what is dropped.
            return False
        return (
            isinstance(error, UnacceptableError | PartialError) or failures >= self._limits.attempts
        )

    def _pause_s(self, error: BaseException, failures: int) -> float:
        limits = self._limits
        # The exponent is bounded too: an outage of a weekend is a number no float holds.
        own = min(limits.backoff_s * 2.0 ** min(failures - 1, 30), limits.backoff_most_s)
        wanted = error.retry_after_s if isinstance(error, UnavailableError) else None
        return max(own * self._random.uniform(0.8, 1.2), min(wanted or 0.0, RETRY_AFTER_MOST_S))

    def _result(self, part: Sequence[Event], error: BaseException | None) -> str:
        if isinstance(error, UnacceptableError):
            return "refused"
        return DELIVERED if error is None or self._keep(part) else "error"
