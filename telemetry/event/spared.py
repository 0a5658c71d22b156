"""The part of an event that says that a search was asked for less than its caller wanted."""

from __future__ import annotations

from .part import EventPart


class Spared(EventPart, tag="spared", frozen=True):
    """
    The sparing of a search's results.

    Attributes:
        mode: Of the run's phase, which is why: ``conserve``.
    """

    mode: str

    def fields(self) -> dict[str, str]:
        """Return the mode."""
        return {"mode": self.mode}
