"""What a write writes and a deletion deletes, as far as the arguments of a call tell it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

_NONE: frozenset[str] = frozenset()


class Covered(Enum):
    """Whether a deletion covers a write that was asked for before it."""

    NO = "no"
    MAYBE = "maybe"
    YES = "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Touches:
    """
    The part of a database that a call changes. Its `repr` shows no names.

    Attributes:
        within: The collection, or what else holds the records apart: records of the same name in
            two of these are two records. It may have two names itself, so that two names are no
            proof of two collections. Empty: the database has no such parts, or all of them.
        records: Names of the records, unique within it.
        owners: Whose the records are, as ``user_id=…``. Of a write: all that is known of them. Of a
            deletion: everything that is of all of these is deleted.
        everything: A deletion: all that there is within it.
        partly: Of the records named, or of everything, some only, or parts of them.
        unknown: More within it, which cannot be told from the arguments.
        key: Where names are digests: under which key. Those under two keys cannot be compared.
    """

    within: str = field(default="", repr=False)
    records: frozenset[str] = field(default=_NONE, repr=False)
    owners: frozenset[str] = field(default=_NONE, repr=False)
    everything: bool = False
    partly: bool = False
    unknown: bool = False
    key: str = ""

    def places(self, *, partly: bool) -> list[str]:
        """Return names of the records with what they are within, as written whole or in part."""
        of = f"{int(partly)}{len(self.within)}:{self.within}"
        return [f"{of}{each}" for each in self.records]

    def needs_order_with(self, other: Touches) -> bool:
        """
        Tell whether this write and *other* must be made in the order in which they were asked for.

        Not if both name their records: there the older gives way to what was made before it.
        """
        if self.records and other.records and not (self.unknown or other.unknown):
            return False
        return not (self.owners and other.owners and self._is_of_others(other))

    def is_apart_from(self, other: Touches) -> bool:
        """Tell whether this write and *other* have no record in common, for certain."""
        return not (self.needs_order_with(other) or self.records & other.records)

    def holds_back(self, later: Touches) -> bool:
        """
        Tell whether a *later* write is to wait while this one fails for a reason nobody knows.

        Not where nothing can be told of one of them. Waiting, this one would hold back everybody's,
        and so would the later one. If the store takes the later one, this one is set aside.
        """
        return self.needs_order_with(later) and not (self.unknown or later.unknown)

    def covers(self, write: Touches) -> Covered:
        """Tell whether this deletion covers *write*, which was asked for before it."""
        if self.key != write.key:
            write = UNTOLD
        if self._certainly_covers(write):
            return Covered.YES
        return Covered.NO if self._is_apart(write) else Covered.MAYBE

    def _certainly_covers(self, write: Touches) -> bool:
        if self.partly or self.within not in {"", write.within}:
            return False
        if self.everything:
            return True
        if write.unknown:
            return False
        theirs = bool(self.owners) and self.owners <= write.owners
        return theirs or (bool(write.records) and write.records <= self.records)

    def _is_apart(self, write: Touches) -> bool:
        if self.unknown or write.unknown or self.everything or self.records & write.records:
            return False
        if self.owners:
            return self._is_of_others(write)
        return bool(self.records and write.records)

    def _is_of_others(self, write: Touches) -> bool:
        """Tell whether an owner that this deletion names is another one of *write*."""
        told = {_key_of(each) for each in write.owners}
        return any(_key_of(each) in told for each in self.owners - write.owners)


def _key_of(owner: str) -> str:
    return owner.partition("=")[0]


UNTOLD = Touches(unknown=True)
"""A call of which nothing can be told."""
