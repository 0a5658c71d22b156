"""
The sequence of each writer, and its gaps.

A writer counts its events from 1 without a gap, and they come roughly in order, so that a few
intervals hold millions of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple


class MissingRange(NamedTuple):
    """A range of one writer's numbers that is missing, both ends included."""

    writer: str
    first: int
    last: int

    @property
    def size(self) -> int:
        """The size of the range."""
        return self.last - self.first + 1


class Writers:
    """Intervals of numbers, by writer."""

    def __init__(self) -> None:
        self._intervals: dict[str, list[list[int]]] = {}

    def add(self, writer: str, number: int) -> None:
        """Add one event."""
        intervals = self._intervals.get(writer)
        if intervals is None:
            self._intervals[writer] = [[number, number]]
        elif intervals[-1][1] + 1 == number:
            intervals[-1][1] = number
        else:
            intervals.append([number, number])

    def update(self, later: Writers) -> None:
        """Add the intervals of *later*, whose events came after."""
        for writer, intervals in later._intervals.items():
            self._intervals.setdefault(writer, []).extend(intervals)

    def twice(self) -> Iterator[tuple[str, int]]:
        """Yield writers and numbers that came more than once."""
        for writer, intervals in self._sorted():
            for before, after in pairwise(intervals):
                if after[0] <= before[1]:
                    yield writer, after[0]

    def missing_ranges(self, *, from_one: bool) -> Iterator[MissingRange]:
        """
        Yield what is missing between the first and the last number of each writer.

        Args:
            from_one: Whether the first number must be 1: nothing is left out before.
        """
        for writer, intervals in self._sorted():
            last = 0 if from_one else intervals[0][0] - 1
            for first, end in intervals:
                if first > last + 1:
                    yield MissingRange(writer, last + 1, first - 1)
                last = max(last, end)

    def missing_in(self, gap: MissingRange) -> int:
        """Return how many numbers of *gap* did not come after all."""
        intervals = self._intervals.get(gap.writer, ())
        overlaps = (min(end, gap.last) - max(first, gap.first) + 1 for first, end in intervals)
        return gap.size - sum(each for each in overlaps if each > 0)

    def _sorted(self) -> Iterator[tuple[str, list[list[int]]]]:
        for writer, intervals in self._intervals.items():
            yield writer, sorted(intervals)


def union(gaps: Iterable[MissingRange]) -> list[MissingRange]:
    """Return *gaps* with those that overlap made one: a crash may declare the same one twice."""
    merged: list[MissingRange] = []
    for each in sorted(gaps):
        last = merged[-1] if merged else None
        if last is not None and last.writer == each.writer and each.first <= last.last + 1:
            merged[-1] = last._replace(last=max(last.last, each.last))
        else:
            merged.append(each)
    return merged


def undeclared(missing_range: MissingRange, declared: list[MissingRange]) -> int:
    """Return how many numbers of *missing_range* none of *declared* has, which is a `union`."""
    missing, at = 0, missing_range.first
    for each in declared:
        if each.writer != missing_range.writer or each.last < at or each.first > missing_range.last:
            continue
        missing += max(0, each.first - at)
        at = max(at, each.last + 1)
    return missing + max(0, missing_range.last - at + 1)
