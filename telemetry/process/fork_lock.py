"""
A lock that `os.fork` respects.

A process forked while another thread is inside a metric's lock, or inside SQLite, inherits locks
that nobody will ever release. So a fork waits for whoever is inside: for a moment only, since a
host that forks must not hang on our account. The child starts with a fresh lock.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from concurrent.futures import thread

from .fork import reset_after_fork

PATIENCE_S = 0.25
"""Longest time that a lock delays a fork, in seconds, unless it is given another."""

SQLITE_PATIENCE_S = 2.0
"""The same for locks around SQLite, whose state of a transaction a child cannot begin anew."""


class ForkLock:
    """
    A lock that keeps out other threads and also forks of the process.

    It is re-entrant: the garbage collector may end a forgotten stream on the very thread that is
    inside, and with it a model call that has to come in as well.

    Args:
        patience_s: Longest time that it delays a fork, in seconds. All locks together delay it no
            longer than the longest of them.

    Attributes:
        is_torn: This process was forked while a thread was inside that is not here: what the lock
            protects is as that thread left it.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s
        self._lock = threading.RLock()
        self.is_torn = False
        self._held_for_fork: bool | None = None  # None: it was made while a fork was under way
        _guards.add(self)
        reset_after_fork(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_exc: object) -> None:
        self._lock.release()

    def hold(self, timeout_s: float) -> bool:
        """Keep everybody outside until the fork is done; return whether nobody was inside."""
        if not self._held_for_fork:
            self._held_for_fork = self._lock.acquire(timeout=max(0.0, timeout_s))
        return self._held_for_fork

    def let_go(self) -> None:
        """Let the others go on."""
        was_held, self._held_for_fork = self._held_for_fork, None
        if was_held:
            self._lock.release()

    def forked(self) -> None:
        """Begin anew in a child: whoever held the lock does not exist there."""
        self._lock = threading.RLock()
        self.is_torn = self.is_torn or (self._held_for_fork is False and self._is_inside())
        self._held_for_fork = None

    def _is_inside(self) -> bool:
        """Return whether whoever held the lock had begun with what it protects."""
        return True


class SqliteLock(ForkLock):
    """
    A `ForkLock` around the use of one file by SQLite, which cannot be begun anew in a child.

    SQLite keeps the locks on a file once for the process, whatever connection has them. Those of a
    thread that is not in the child are never given back there: each write would wait for them, and
    have all other processes wait for its turn. So a fork waits longer, and a child that is torn all
    the same writes nothing.
    """

    def __init__(self) -> None:
        super().__init__(SQLITE_PATIENCE_S)
        self._depth = 0

    def __enter__(self) -> None:
        super().__enter__()
        self._depth += 1

    def __exit__(self, *exc: object) -> None:
        self._depth -= 1
        super().__exit__(*exc)

    def forked(self) -> None:
        """Begin anew in a child."""
        super().forked()
        self._depth = 0

    def _is_inside(self) -> bool:
        return self._depth > 0


_guards: weakref.WeakSet[ForkLock] = weakref.WeakSet()


def _before() -> None:
    began_s = time.monotonic()
    needed = list(_guards)
    while busy := next((each for each in needed if not each.hold(0)), None):
        # With nothing held: whoever is inside of it may be on the way into another.
        for each in needed:
            each.let_go()
        if not busy.hold(busy.patience_s - (time.monotonic() - began_s)):
            # Forked without it: a child with a stuck lock of ours is given a new one.
            needed.remove(busy)


def _in_parent() -> None:
    for guard in list(_guards):
        guard.let_go()


HOOKED_BEFORE = (logging, thread)
"""
Modules that are imported here so that they register their hooks first.

What was registered last comes first before a fork, and whoever is inside one of our locks may need
one that another hook takes: logging's, where it imports.
"""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent)
