"""The judgement of an answer: what of it is not what was written there, last."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from ..guard.stored import ABSENT, Members, Newest, Place, Statements, Value
from .seals import GONE, THINNED, PlaceWrite, SealIndex, certain, standing

_TICKS_TO_2020: Final = 1_577_836_800 * 10_000_000


class Found(StrEnum):
    """
    What of an answer is wrong, as events have it.

    Attributes:
        CHANGED: A value is none that was written there.
        FOREIGN: A value was written elsewhere, by its own words.
        REPLAYED: A value was written there, and another one after it.
        DELETED: A value was written there, and deleted after that.
        UNWRITTEN: Nobody has written there, of whatever was written around it.
        MISSING: Something that was written, and not deleted, is not there.
        OLDER: The newest is older than the newest that was written.
        UNKNOWN: It cannot be told: nobody is known to have written there.
    """

    CHANGED = "changed"
    FOREIGN = "foreign"
    REPLAYED = "replayed"
    DELETED = "deleted"
    UNWRITTEN = "unwritten"
    MISSING = "missing"
    OLDER = "older"
    UNKNOWN = "unknown"


class _History(NamedTuple):
    """The writes to a place: all, those not cleared since, and until when some may be gone."""

    entries: list[PlaceWrite]
    live: list[PlaceWrite]
    thinned_us: int


class Judge:
    """
    Judges what one call found.

    Args:
        seals: What was written.
        at_us: When the answer was asked for, µs since 1970 UTC.
        before: Of an answer in pieces: the order of the last piece of each place.
    """

    def __init__(
        self, seals: SealIndex, at_us: int, before: dict[Place, float] | None = None
    ) -> None:
        self._seals = seals
        self._at_us = at_us
        self._before = {} if before is None else before
        self._known: dict[Place, list[PlaceWrite]] = {}

    def names(self, said: Statements) -> list[str]:
        """Return the names that *said* is judged by."""
        places = [place for each in said.values for place in _places(each)]
        places += [place for each in said.members for place in _places(each)]
        places += [place for each in said.newest if each.is_whole for place in _places(each)]
        places += [each.place for each in said.newest if not each.is_whole]
        return [self._seals.name(each) for each in dict.fromkeys(places)]

    def further_names(self, said: Statements) -> list[str]:
        """Return the names of what seems to be missing: it may have been deleted."""
        missing = (self._gone(of, number) for of in said.members for number in self._lacks(of))
        return [each for each in missing if each is not None]

    def judge(self, said: Statements) -> Counter[str]:
        """Return how much of *said* is wrong, by code."""
        found: Counter[str] = Counter()
        self._known = {}  # more may have been looked up
        is_known = False
        for value in said.values:
            code, is_written = self._value(value, said.newest, is_known=is_known)
            is_known = is_known or (is_written and value.made is not None)
            if code is not None:
                found[code] += 1
        for members in said.members:
            lacking = [each for each in self._lacks(members) if not self._is_gone(members, each)]
            if lacking:
                found[Found.MISSING] += len(lacking)
        for newest in said.newest:
            if newest.is_whole and (code := self._newest(newest)) is not None:
                found[code] += 1
        return found

    def passed(self, said: Statements) -> None:
        """Keep the order of a piece, for the next one."""
        for each in said.newest:
            self._before[each.place] = each.order

    def _history(self, place: Place, roots: Iterable[Place]) -> _History:
        entries = self._at(place)
        marks = [mark for each in roots for mark in self._at(each)]
        marks += [each for each in entries if abs(each.number) == THINNED]
        cleared = [m.begun_us for m in certain(marks, self._at_us) if m.number == GONE]
        thinned = [m.ended_us for m in marks if abs(m.number) == THINNED]
        since = max(cleared, default=-1)
        written = [each for each in entries if abs(each.number) != THINNED]
        live = [each for each in written if each.ended_us >= since]
        return _History(written, live, max(thinned, default=-1))

    def _at(self, place: Place) -> list[PlaceWrite]:
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = self._seals.entries(self._seals.name(place))
        return known

    def _value(
        self, value: Value, newest: Sequence[Newest], *, is_known: bool
    ) -> tuple[Found | None, bool]:
        """Return what is wrong with *value*, and whether somebody has written there."""
        entries, live, thinned_us = self._history(value.place, value.roots)
        if value.value is ABSENT:
            return self._absent(live, thinned_us), bool(entries)
        if not entries:
            is_ours = is_known if value.made is None else self._is_after_ours(value, newest)
            made_us = math.inf if value.made is None else _us(value.made)
            is_told = is_ours and made_us > thinned_us and (value.made or thinned_us < 0)
            return Found.UNWRITTEN if is_told else Found.UNKNOWN, False
        try:
            number = self._seals.number(value.place, value.value)
        except TypeError:
            return Found.UNKNOWN, True
        numbers = {abs(each.number) for each in live}
        if number in (numbers if value.stays else standing(live, self._at_us)):
            return Found.UNKNOWN if value.is_partial else None, True
        return self._difference(value, number, entries, live, thinned_us), True

    def _difference(
        self,
        value: Value,
        number: float,
        entries: list[PlaceWrite],
        live: list[PlaceWrite],
        thinned_us: int,
    ) -> Found:
        if not certain(live, self._at_us) and live:
            return Found.UNKNOWN  # it may not have been taken
        if all(each.ended_us <= thinned_us for each in live) and live:
            return Found.UNKNOWN
        if not live or all(each.number == GONE for each in live):
            return Found.DELETED
        if value.is_misplaced:
            return Found.FOREIGN
        if number in {abs(each.number) for each in entries}:
            return Found.REPLAYED
        return Found.CHANGED

    def _absent(self, live: list[PlaceWrite], thinned_us: int) -> Found | None:
        stands = standing(live, self._at_us)
        is_there = stands and GONE not in stands
        taken = [each for each in certain(live, self._at_us) if each.ended_us > thinned_us]
        return Found.MISSING if is_there and taken else None

    def _is_after_ours(self, value: Value, newest: Sequence[Newest]) -> bool:
        """Return whether *value* was made after something that is known of the same place."""
        for each in newest:
            _, live, _ = self._history(each.place, value.roots)
            known = [of.number for of in certain(live, self._at_us)]
            if value.made is not None and known and value.made >= min(known):
                return True
        return False

    def _lacks(self, members: Members) -> list[float]:
        """Return the numbers of what was added to a set, and is not in the answer."""
        _, live, thinned_us = self._history(members.place, members.roots)
        taken = [each for each in certain(live, self._at_us) if each.ended_us > thinned_us]
        there = {self._seals.number(members.numbered_at, each) for each in members.names}
        return [each for each in dict.fromkeys(of.number for of in taken) if each not in there]

    def _gone(self, members: Members, number: float) -> str | None:
        if members.each is None:
            return None
        return self._seals.name((*members.each, number))

    def _is_gone(self, members: Members, number: float) -> bool:
        name = self._gone(members, number)
        if name is None:
            return False
        stands = standing(self._seals.entries(name), self._at_us)
        return not stands or GONE in stands

    def _newest(self, newest: Newest) -> Found | None:
        _, live, thinned_us = self._history(newest.place, newest.roots)
        before = self._before.get(newest.place, math.inf)
        between = [
            each
            for each in certain(live, self._at_us)
            if newest.order < each.number < before and each.ended_us > thinned_us
        ]
        if not between:
            return None
        return Found.OLDER if before == math.inf and newest.order >= 0 else Found.MISSING


def _places(of: Value | Members | Newest) -> Iterator[Place]:
    yield of.place
    yield from of.roots


def _us(order: float) -> float:
    return (order + _TICKS_TO_2020) / 10
