"""The rights of people on the site."""

from __future__ import annotations

from enum import StrEnum


class Right(StrEnum):
    """
    A thing that somebody may do on the site. To decide or erase includes to see.

    Attributes:
        SEE: Look: at what waits, at people, runs and health.
        DECIDE: Approve, edit, reject and skip what waits for a human.
        ERASE: Erase people from the stores and the trail, and withdraw memories.
    """

    SEE = "see"
    DECIDE = "decide"
    ERASE = "erase"


ALL_RIGHTS = frozenset(Right)
