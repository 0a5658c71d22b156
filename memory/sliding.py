"""A sum over the last so many seconds, in memory that does not grow with what is added."""

from __future__ import annotations

_BUCKETS = 60
_RECENT = _BUCKETS // 10


class SlidingSum:
    """
    Adds up amounts, and forgets each a period later.

    A period is 60 buckets, and one more that is being filled: an amount is remembered for a period
    at least, and for a sixtieth of one longer at most. Not thread-safe.

    Args:
        period_s: Length of the period, seconds.
        now: Monotonic seconds, as in all methods.
    """

    def __init__(self, period_s: float, now: float) -> None:
        self._width_s = period_s / _BUCKETS
        self._begun = now
        self._newest = self._bucket(now)
        self._amounts = [0] * (_BUCKETS + 1)

    def add(self, amount: int, now: float) -> None:
        """Add *amount*: whole units, since sums of fractions drift."""
        self._turn(now)
        self._amounts[self._newest % len(self._amounts)] += amount

    def total(self, now: float) -> int:
        """Return what was added in the period that ends now."""
        self._turn(now)
        return sum(self._amounts)

    def per_second(self, now: float) -> float:
        """Return the pace of the last tenth of a period, or of the time since the beginning."""
        self._turn(now)
        size = len(self._amounts)
        recent = sum(self._amounts[(self._newest - back) % size] for back in range(_RECENT + 1))
        seen_s = now - max(self._begun, (self._newest - _RECENT) * self._width_s)
        return recent / max(seen_s, self._width_s)

    def _bucket(self, now: float) -> int:
        return int(now // self._width_s)

    def _turn(self, now: float) -> None:
        newest = self._bucket(now)
        size = len(self._amounts)
        for empty in range(max(self._newest + 1, newest - size + 1), newest + 1):
            self._amounts[empty % size] = 0
        self._newest = max(self._newest, newest)
