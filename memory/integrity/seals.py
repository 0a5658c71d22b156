"""
Seals: keyed hashes of places and of what was written there, in this process and in the audit trail.

A name is a keyed hash of a place, and a number a keyed hash of a value there. Values that were
written are looked up by their place, so that a value that was not written there is told from a
place that nobody wrote to.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple, TypeAlias

from ...telemetry.process.fork import reset_after_fork
from ..guard.stored import Place, canonical
from .backlog import Backlog

MOST_NAMES: Final = 65_536
"""Names that a process keeps: those of other places are looked up in the audit trail."""

MOST_OF_ONE: Final = 1_000
"""Entries that are kept of one name: the latest."""

LOOK_AGAIN_S: Final = 10.0
"""Seconds after which a name is looked up again: other processes write, too."""

GONE: Final = 0.0
"""The number of a place at which nothing is left."""

THINNED: Final = 0.5
"""The number of a place of which some may be gone, or changed."""

_NAME_BYTES: Final = 16
_MOST_PLACES: Final = 8_192
_NUMBER_BITS: Final = 52
"""As many as a double holds exactly, which is what the audit trail has a column for."""


class PlaceWrite(NamedTuple):
    """
    One write to a place.

    Attributes:
        begun_us: When it began, µs since 1970 UTC.
        ended_us: When the store had answered.
        number: Of what was written; negative, where the store may not have taken it.
    """

    begun_us: int
    ended_us: int
    number: float


SealTrail: TypeAlias = Callable[[Sequence[str]], Mapping[str, Sequence[tuple[int, int, float]]]]
"""Returns the latest events of each name: begin and end in µs since 1970, and number."""


class SealIndex:
    """
    The seals of one scope. Thread-safe.

    Args:
        key: 32 bytes, the same in all processes that share a store.
        clock: Monotonic seconds.
        trail: Where seals of other processes are looked up. None: nowhere.

    Attributes:
        name: Returns the name of a place: 32 hex digits.
        waiting: Writes that are not noted yet: to be settled before a read is judged.
    """

    def __init__(
        self, key: bytes, clock: Callable[[], float], trail: SealTrail | None = None
    ) -> None:
        self.trail = trail
        self.waiting = Backlog()
        self._names = blake2b(key=key, digest_size=_NAME_BYTES, person=b"place")
        self._numbers = blake2b(key=key, digest_size=8, person=b"value")
        self._clock = clock
        self._entries: OrderedDict[str, list[PlaceWrite]] = OrderedDict()
        self._looked_up: dict[str, float] = {}
        self._lock = threading.Lock()
        self.name = lru_cache(_MOST_PLACES)(self._name)
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin anew in a forked process: whoever had the lock is not here."""
        self._lock = threading.Lock()

    def _name(self, place: Place) -> str:
        digest = self._names.copy()
        digest.update(canonical(place))
        return digest.hexdigest()

    def number(self, place: Place, value: Any) -> float:
        """
        Return the number of *value* at *place*: 52 bits, and neither `GONE` nor `THINNED`.

        Raises:
            TypeError: It has no canonical form.
        """
        digest = self._numbers.copy()
        digest.update(canonical((place, value)))
        return float(1 + (int.from_bytes(digest.digest()) >> (64 - _NUMBER_BITS)))

    def note(
        self,
        names: Iterable[tuple[str, float]],
        begun_us: int,
        ended_us: int,
        *,
        whole: Iterable[str] = (),
    ) -> None:
        """
        Keep what was written, before it is in the trail.

        Args:
            names: Each with its number.
            begun_us: When the write began.
            ended_us: When it had ended.
            whole: Names of places of which it does not matter what was written there before.
        """
        now = self._clock()
        with self._lock:
            for name, number in names:
                self._add(name, [PlaceWrite(begun_us, ended_us, number)])
            for name in whole:
                self._add(name, ())
                self._looked_up[name] = now

    def entries(self, name: str) -> list[PlaceWrite]:
        """Return what is known to have been written under *name*."""
        with self._lock:
            return list(self._entries.get(name, ()))

    def outdated(self, names: Iterable[str]) -> list[str]:
        """Return those of *names* that are to be looked up."""
        if self.trail is None:
            return []
        before, looked_up = self._clock() - LOOK_AGAIN_S, self._looked_up
        return [each for each in names if looked_up.get(each, before) <= before]

    def look_up(self, names: Sequence[str]) -> None:
        """Ask the trail for what was written under *names*."""
        if self.trail is None or not names:
            return
        found, now = self.trail(names), self._clock()
        with self._lock:
            for name in names:
                self._looked_up[name] = now
                self._add(name, [PlaceWrite(*each) for each in found.get(name, ())])

    def _add(self, name: str, entries: Sequence[PlaceWrite]) -> None:
        known = self._entries.setdefault(name, [])
        # An own event comes back from the trail: the same begin and number, and a later end.
        have = {(each.begun_us, each.number) for each in known} if entries else ()
        known += [each for each in entries if (each.begun_us, each.number) not in have]
        if len(known) > MOST_OF_ONE:
            known.sort()
            del known[:-MOST_OF_ONE]
        self._entries.move_to_end(name)
        if len(self._entries) > MOST_NAMES:
            gone, _ = self._entries.popitem(last=False)
            self._looked_up.pop(gone, None)


def standing(entries: Iterable[PlaceWrite], at_us: int) -> set[float]:
    """
    Return the numbers that may stand at a place in an answer that was asked for at *at_us*.

    A write is superseded by one that began after it had ended, and had ended by then.
    """
    known = list(entries)
    since = max(
        (each.begun_us for each in known if each.number >= 0 and each.ended_us <= at_us), default=-1
    )
    return {abs(each.number) for each in known if each.ended_us >= since}


def certain(entries: Iterable[PlaceWrite], at_us: int) -> list[PlaceWrite]:
    """Return the writes that the store had taken by *at_us*, and those alone."""
    return [each for each in entries if each.number >= 0 and each.ended_us <= at_us]
