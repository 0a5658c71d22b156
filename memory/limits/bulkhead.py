"""The bulkhead: a limit of the calls inside a store at once, hung ones included."""

from __future__ import annotations

from ...telemetry.process.fork import reset_after_fork


class Bulkhead:
    """
    A counter of places that never waits: a queue before a slow store only adds to the wait.

    Args:
        places: Calls that may be inside at once.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin with nobody inside: the calls in flight are the parent's."""
        # A list of what is free, since its `pop` and `append` are atomic: no lock, which a signal
        # handler or finaliser on the same thread could meet half-way.
        self._free = [None] * self._places

    @property
    def in_flight(self) -> int:
        """Calls inside now."""
        return self._places - len(self._free)

    @property
    def is_full(self) -> bool:
        """Whether all places are taken."""
        return not self._free

    def enter(self) -> bool:
        """Take a place. False when there is none."""
        try:
            self._free.pop()
        except IndexError:
            return False
        return True

    def leave(self) -> None:
        """Give the place back, when the store has really answered."""
        # In a child forked from inside a call there is nobody to count out.
        if len(self._free) < self._places:
            self._free.append(None)
