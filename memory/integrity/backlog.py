"""Work that calls leave to whoever needs its result first: a sink's thread, or a later call."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from ...telemetry.process.fork import reset_after_fork

MOST: Final = 64
"""Pieces of work that wait: each has the state of a call."""

MOST_BYTES: Final = 4 << 20
"""Of states that wait, as far as they are copies."""


class Backlog:
    """Work that waits, done in order, by one thread at a time. Thread-safe."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._size_bytes = 0
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin anew in a forked process: whoever had the lock is not here."""
        self._lock = threading.RLock()

    def add(self, work: Callable[[], None], size_bytes: int) -> None:
        """Have *work* done by the next who settles: at once, where too much waits."""
        self._waiting.append(work)
        self._size_bytes += size_bytes
        if len(self._waiting) > MOST or self._size_bytes > MOST_BYTES:
            self.settle()

    def settle(self) -> None:
        """Do what waits, and wait for what another thread is doing of it."""
        with self._lock:
            while self._waiting:
                self._waiting.popleft()()
            self._size_bytes = 0
