"""A clock that tests turn."""

from __future__ import annotations


class Clock:
    """
    Seconds that stand still until they are moved.

    Attributes:
        now_s: The time.
    """

    def __init__(self, now_s: float) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s
