"""
Lost events, found by gaps in the sequence that each writer counts.

Threads overtake one another between counting and queueing, so a gap is given time before it is
called a loss. What comes after that is recorded all the same, and counts as there.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

PATIENCE_S = 10.0
"""Seconds that an event may arrive after one that was counted later."""

_MOST_AT_ONCE_S = 1.5
"""Of the seconds between two looks, those in which an event could arrive: a beat, and a half."""

UNDELIVERED = "undelivered"
"""Why an event is missing that never came: a queue was full, or its process was closing."""

UNDER_WAY = "under_way"
"""Why an event is missing that no call was over for: its process was gone in the middle of it."""

UNKNOWN_END = "unknown_end"
"""Why an event is missing whose process is gone, nobody knows how: ``killed`` in earlier logs."""

DAMAGED = "damaged"
"""Why an event is missing that was kept, and cannot be recorded."""

_WRITERS = 64


class SequenceGap(NamedTuple):
    """
    A range of one writer's events that are lost.

    Attributes:
        writer: The writer that counted them.
        first: The first number.
        last: The last one.
        reason: `UNDELIVERED`; ``spool_full``; `DAMAGED`; `UNKNOWN_END`: its process was gone
            before it had recorded them; `UNDER_WAY`: likewise, before their calls returned.
    """

    writer: str
    first: int
    last: int
    reason: str

    @property
    def events(self) -> int:
        """The number of events."""
        return self.last - self.first + 1

    def as_data(self) -> dict[str, Any]:
        """Return the gap as the data of an ``audit.gap`` event."""
        return {
            "writer": self.writer,
            "from_wseq": self.first,
            "to_wseq": self.last,
            "count": self.events,
            "reason": self.reason,
        }


def joined(gaps: Iterable[SequenceGap]) -> list[SequenceGap]:
    """Return *gaps* with neighbours made one."""
    found: list[SequenceGap] = []
    for gap in gaps:
        last = found[-1] if found else None
        if last is not None and last.last + 1 == gap.first and _like(last) == _like(gap):
            found[-1] = last._replace(last=gap.last)
        else:
            found.append(gap)
    return found


def _like(gap: SequenceGap) -> tuple[str, str]:
    return gap.writer, gap.reason


class WriterCounters:
    """
    The counters of the writers whose events pass here. Not thread-safe.

    Args:
        clock: Monotonic seconds.
        from_any: Whether a writer may begin with any number: what came before it was seen by
            somebody else.
    """

    def __init__(self, clock: Callable[[], float], *, from_any: bool = False) -> None:
        self._clock = clock
        self._from_any = from_any
        self._next: dict[str, int] = {}
        self._open: defaultdict[str, list[_Missing]] = defaultdict(list)
        self._patience_s, self._looked_at = 0.0, clock()

    def _now_s(self) -> float:
        """
        Return the seconds in which events could arrive.

        While a write takes long, or the machine stands still, what waits behind it cannot.
        """
        now = self._clock()
        self._patience_s += min(max(now - self._looked_at, 0.0), _MOST_AT_ONCE_S)
        self._looked_at = now
        return self._patience_s

    def saw(self, writer: str, first: int, last: int | None = None) -> None:
        """Note that an event came, or those from *first* to *last*."""
        last = first if last is None else last
        expected = self._next.get(writer, first if self._from_any else 1)
        if last >= expected:
            self._next[writer] = last + 1
        if first > expected:
            insort(self._open[writer], _Missing(expected, first - 1, self._now_s()))
        elif first < expected:
            _take_out(self._open[writer], first, last)
        if len(self._next) > _WRITERS:
            del self._next[next(iter(self._next))]

    def expect(self, writer: str, last: int) -> None:
        """Note that a writer has counted so many events: those that never come are lost."""
        if last >= self._next.get(writer, 1):
            self.saw(writer, last + 1)
            self._next[writer] = last + 1

    def have_all(self, writer: str, last: int) -> bool:
        """Return whether the events of a writer up to *last* came, or are declared as lost."""
        return last < self._next.get(writer, 1) and not self._open.get(writer)

    def forget(self, writer: str) -> None:
        """Forget a writer, and the losses that may be none: what is missing of it is looked up."""
        self._next.pop(writer, None)
        self._open.pop(writer, None)

    def ripe(self, *, at_once: bool = False) -> list[SequenceGap]:
        """Return, and forget, the losses that had time enough to turn out to be none."""
        before = self._now_s() - (0.0 if at_once else PATIENCE_S)
        found: list[SequenceGap] = []
        for writer, missing in list(self._open.items()):
            found += [
                SequenceGap(writer, each.first, each.last, UNDELIVERED)
                for each in missing
                if each.since <= before
            ]
            self._open[writer] = [each for each in missing if each.since > before]
            if not self._open[writer]:
                del self._open[writer]
        return joined(sorted(found))


class _Missing(NamedTuple):
    """Numbers that were passed over, and since when."""

    first: int
    last: int
    since: float


def _take_out(missing: list[_Missing], first: int, last: int) -> None:
    """Take the numbers from *first* to *last* out of *missing*, which is in order."""
    start = end = max(0, bisect_right(missing, first, key=lambda each: each.first) - 1)
    left: list[_Missing] = []
    while end < len(missing) and missing[end].first <= last:
        each = missing[end]
        if each.first < first:
            left.append(each._replace(last=min(each.last, first - 1)))
        if each.last > last:
            left.append(each._replace(first=max(each.first, last + 1)))
        end += 1
    missing[start:end] = left
