"""
Lost events, found by gaps in the sequence that each writer counts.

Threads overtake one another between counting and queueing, so a gap is given time before it is
called a loss. What comes after that is recorded all the same, and counts as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

PATIENCE_S = 10.0
"""Seconds that an event may arrive after one that was counted later."""

UNDER_WAY = "under_way"
"""Why an event is missing that no call was over for: its process was killed in the middle of it."""

_WRITERS = 64


class SequenceGap(NamedTuple):
    """
    A range of one writer's events that are lost.

    Attributes:
        writer: The writer that counted them.
        first: The first number.
        last: The last one.
        reason: ``overflow``: a queue was full; ``spool_full``; ``damaged``; ``killed``: its process
            died before it had recorded them; `UNDER_WAY`: likewise, before their calls returned.
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
        """Return what ``audit.gap`` says."""
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
        self._open: list[tuple[SequenceGap, float]] = []

    def saw(self, writer: str, number: int) -> None:
        """Note that an event came."""
        expected = self._next.get(writer, number if self._from_any else 1)
        if number >= expected:
            self._next[writer] = number + 1
        if number > expected:
            self._open.append(
                (SequenceGap(writer, expected, number - 1, "overflow"), self._clock())
            )
        elif number < expected:
            self._open = [part for each in self._open for part in _without(each, writer, number)]
        if len(self._next) > _WRITERS:
            del self._next[next(iter(self._next))]

    def expect(self, writer: str, last: int) -> None:
        """Note that a writer has counted so many events: those that never come are lost."""
        if last >= self._next.get(writer, 1):
            self.saw(writer, last + 1)
            self._next[writer] = last + 1

    def forget(self, writer: str) -> None:
        """Forget a writer, and the losses that may be none: what is missing of it is looked up."""
        self._next.pop(writer, None)
        self._open = [each for each in self._open if each[0].writer != writer]

    def ripe(self, *, at_once: bool = False) -> list[SequenceGap]:
        """Return, and forget, the losses that had time enough to turn out to be none."""
        before = self._clock() - (0.0 if at_once else PATIENCE_S)
        found = [gap for gap, since in self._open if since <= before]
        self._open = [each for each in self._open if each[1] > before]
        return joined(sorted(found))


def _without(
    candidate: tuple[SequenceGap, float], writer: str, number: int
) -> Iterator[tuple[SequenceGap, float]]:
    gap, since = candidate
    if gap.writer != writer or not gap.first <= number <= gap.last:
        yield candidate
        return
    if gap.first < number:
        yield gap._replace(last=number - 1), since
    if number < gap.last:
        yield gap._replace(first=number + 1), since
