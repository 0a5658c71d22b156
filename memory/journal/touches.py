"""What a write writes and a deletion deletes, as far as the arguments of a call tell it."""

from __future__ import annotations

from dataclasses import dataclass
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
    The part of a database that a call changes.

    Attributes:
        within: The collection, or what else holds the records apart: records of the same name in
            two of these are two records. Empty: the database has no such parts, or all of them.
        records: Names of the records, unique within it.
        owners: Whose the records are, as ``user_id=…``. Of a write: all that is known of them. Of a
            deletion: everything that is of all of these is deleted.
        everything: A deletion: all that there is within it.
        unknown: More, which cannot be told from the arguments.
    """

    within: str = ""
    records: frozenset[str] = _NONE
    owners: frozenset[str] = _NONE
    everything: bool = False
    unknown: bool = False

    def place(self, record: str) -> str:
        """Return the name of a record of this with what it is within."""
        return f"{len(self.within)}:{self.within}{record}"

    def covers(self, write: Touches) -> Covered:
        """Tell whether this deletion covers *write*, which was asked for before it."""
        if self.within and write.within and self.within != write.within:
            return Covered.NO
        if self._certainly_covers(write):
            return Covered.YES
        if self.unknown or write.unknown or self.everything:
            return Covered.MAYBE
        if self.owners:
            apart = bool(write.owners) and not self.records & write.records
        else:
            apart = bool(self.records and write.records) and not self.records & write.records
        return Covered.NO if apart else Covered.MAYBE

    def _certainly_covers(self, write: Touches) -> bool:
        if self.within != write.within and self.within:
            return False
        if self.everything or (self.owners and self.owners <= write.owners):
            return True
        return bool(write.records) and not write.unknown and write.records <= self.records


UNTOLD = Touches(unknown=True)
"""A call of which nothing can be told."""
