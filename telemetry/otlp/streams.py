"""
Numbers for the metric streams of one process.

Scopes count apart, each from its own start, under the resource of the one process they are in. A
back end would take that for one stream that begins anew with every export. So the metrics of a
second scope say that they are the second's, for as long as the first exports.
"""

from __future__ import annotations

from ..process.fork import reset_after_fork
from ..process.fork_lock import ForkLock


class Streams:
    """The numbers that are in use."""

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._lock = ForkLock()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin anew in a forked child, which is another instance of the service."""
        self._taken.clear()

    def take(self) -> int:
        """Return the lowest number from 1 that nobody has."""
        with self._lock:
            number = min(set(range(1, len(self._taken) + 2)) - self._taken)
            self._taken.add(number)
            return number

    def release(self, number: int) -> None:
        """Let others have *number*."""
        with self._lock:
            self._taken.discard(number)


STREAMS = Streams()
"""Those of this process."""
