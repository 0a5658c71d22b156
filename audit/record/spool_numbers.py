"""
The numbers of a spool's records, as logs have them that 0.2 and before have written to.

All processes of a machine counted the records of a spool together, from 1. A range is its first
and its last number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .writer_events import ABOUT_WRITERS

TAKEN, MISSING = "spool.taken", "spool.missing"
"""Events: records were taken out of a spool and are in the log; records are gone from it."""

ABOUT_SPOOLS = frozenset({TAKEN, MISSING})

Range = tuple[int, int]


def merged(ranges: Iterable[Iterable[int]]) -> list[Range]:
    """Return *ranges* in order, with those that touch made one."""
    found: list[Range] = []
    for first, last in sorted((first, last) for first, last in ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def outside(first: int, last: int, known: Iterable[Iterable[int]]) -> Iterator[Range]:
    """Yield the ranges from *first* to *last* that are in none of *known*."""
    for start, stop in merged(known):
        if start > first:
            yield first, min(start - 1, last)
        first = max(first, stop + 1)
        if first > last:
            return
    if first <= last:
        yield first, last


def count_of(ranges: Iterable[Range]) -> int:
    """Return how many numbers *ranges* have, none of which overlap."""
    return sum(last - first + 1 for first, last in ranges)


@dataclass(slots=True)
class SpoolAccount:
    """
    What a log says of one spool.

    Attributes:
        end: The highest number that is known of.
        first: The lowest that is known of, where older events are gone.
    """

    end: int = 0
    first: int | None = None
    taken: list[Range] = field(default_factory=list[Range])
    missing: list[Range] = field(default_factory=list[Range])

    def note_end(self, end: int) -> None:
        """Note that a process said how far the numbers are."""
        self.end = max(self.end, end)
        self.first = end + 1 if self.first is None else self.first

    def note(self, name: str, ranges: Iterable[Iterable[int]]) -> None:
        """Note one of `ABOUT_SPOOLS`."""
        found = merged(ranges)
        (self.taken if name == TAKEN else self.missing).extend(found)
        for first, last in found:
            self.end = max(self.end, last)
            self.first = first if self.first is None else min(self.first, first)

    def absorb(self, later: SpoolAccount) -> None:
        """Add what later events say."""
        self.end = max(self.end, later.end)
        known = [each.first for each in (self, later) if each.first is not None]
        self.first = min(known, default=None)
        self.taken += later.taken
        self.missing += later.missing

    def lost(self) -> list[Range]:
        """Return what is declared as gone, and was not taken out after all."""
        return [part for each in merged(self.missing) for part in outside(*each, self.taken)]

    def unaccounted(self, *, from_one: bool) -> list[Range]:
        """
        Return the numbers of which nothing is said.

        Args:
            from_one: Whether all events about it are known. Else it begins with the first of them.
        """
        first = 1 if from_one else self.first
        known = [*self.taken, *self.missing]
        return [] if first is None else list(outside(first, self.end, known))


def note_spool(accounts: dict[str, SpoolAccount], name: str, data: Mapping[str, Any]) -> None:
    """Note in *accounts* what an event about the log says of a spool, if anything."""
    if name in ABOUT_SPOOLS:
        accounts.setdefault(data["spool"], SpoolAccount()).note(name, data["numbers"])
    elif name in ABOUT_WRITERS and "spool" in data:
        spool, end = data["spool"]
        accounts.setdefault(spool, SpoolAccount()).note_end(end)
