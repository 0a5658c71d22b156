"""The part of an event that says that what an operation touched is nobody's personal data."""

from __future__ import annotations

from .part import EventPart


class NobodysData(EventPart, tag="nobodys", frozen=True):
    """
    The user's word that a store, or a part of it, holds nobody's data. Shown by the trail alone.

    It is with what is done there for nobody: help pages that are written, say.
    """

    def sealed(self) -> bool:
        """Return True."""
        return True
