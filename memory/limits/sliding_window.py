"""A sum over a sliding window of time, in constant memory."""

from __future__ import annotations

_BUCKETS = 60
_RECENT = _BUCKETS // 10


class SlidingSum:
    """
    A sum of the amounts of the last period. Not thread-safe.

    A period has 60 buckets, and one more is being filled: an amount counts for at least a period
    and at most a sixtieth longer.

    Args:
        period_s: Length of the period, seconds.
        now: Monotonic seconds, as in all methods.
    """

    def __init__(self, period_s: float, now: float) -> None:
        self._width_s = period_s / _BUCKETS
        self._started = now
        self._amounts = [0] * (_BUCKETS + 1)
        self._total = 0
        self._fill(int(now // self._width_s))

    def add(self, amount: int, now: float) -> None:
        """Add *amount*, in whole units: sums of fractions drift."""
        if now >= self._ends:
            self._expire(now)
        self._amounts[self._place] += amount
        self._total += amount

    def total(self, now: float) -> int:
        """Return the sum of the period that ends now."""
        if now >= self._ends:
            self._expire(now)
        return self._total

    def per_second(self, now: float) -> float:
        """Return the rate over the last tenth of a period, or since the start if that is later."""
        self._expire(now)
        size = len(self._amounts)
        recent = sum(self._amounts[(self._newest - back) % size] for back in range(_RECENT + 1))
        elapsed_s = now - max(self._started, (self._newest - _RECENT) * self._width_s)
        return recent / max(elapsed_s, self._width_s)

    def _expire(self, now: float) -> None:
        newest = int(now // self._width_s)
        if newest <= self._newest:
            return
        size = len(self._amounts)
        for empty in range(max(self._newest + 1, newest - size + 1), newest + 1):
            self._total -= self._amounts[empty % size]
            self._amounts[empty % size] = 0
        self._fill(newest)

    def _fill(self, newest: int) -> None:
        self._newest, self._place = newest, newest % len(self._amounts)
        self._ends = (newest + 1) * self._width_s
