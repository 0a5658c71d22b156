"""A bound on how many calls are inside a store at once, the hung ones included."""

from __future__ import annotations

import threading

from ..telemetry.fork import reset_after_fork


class Bulkhead:
    """
    Counts places; never waits for one: a queue in front of a slow store only adds to the wait.

    Args:
        places: Calls that may be inside at once.

    Attributes:
        in_flight: Calls inside now.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin with nobody inside: the calls in flight are the parent's."""
        self._lock = threading.RLock()
        self.in_flight = 0

    def enter(self) -> bool:
        """Take a place. False when there is none."""
        with self._lock:
            if self.in_flight >= self._places:
                return False
            self.in_flight += 1
            return True

    def leave(self) -> None:
        """Give the place back, when the store has really answered."""
        with self._lock:
            # In a child forked from inside a call there is nobody to count out.
            self.in_flight = max(0, self.in_flight - 1)
