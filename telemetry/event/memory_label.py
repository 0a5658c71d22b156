"""The part of an event that says how far what was written is to be trusted."""

from __future__ import annotations

from .part import EventPart


class MemoryLabel(EventPart, tag="origin", frozen=True):
    """
    The origin of the memories that an operation wrote. Shown by the audit trail alone.

    Attributes:
        origin: The least trusted source of all that the run had read: a code. Closed.
        trust: The same as a number: the higher, the more.
        tags: Keyed hashes of place, id and content, one for each part of each memory.
    """

    origin: str
    trust: int
    tags: tuple[str, ...]

    def sealed(self) -> str:
        """Return the code."""
        return self.origin

    def references(self) -> list[tuple[str, float]]:
        """Return the tags, each with the trust."""
        return [(tag, float(self.trust)) for tag in self.tags]
