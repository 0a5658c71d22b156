"""
A lock that `os.fork` respects.

A process forked while another thread is inside a metric's lock, or inside SQLite, inherits locks
that nobody will ever release. So a fork waits for whoever is inside: for a moment only, since a
host that forks must not hang on our account. The child starts with a fresh lock.
"""

from __future__ import annotations

import os
import threading
import weakref

from .fork import reset_after_fork

PATIENCE_S = 0.25
"""Longest time that a lock delays a fork, in seconds, unless it is given another."""


class ForkLock:
    """
    A lock that keeps out other threads and also forks of the process.

    It is re-entrant: the garbage collector may end a forgotten stream on the very thread that is
    inside, and with it a model call that has to come in as well.

    Args:
        patience_s: Longest time that it delays a fork, in seconds.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s
        self._lock = threading.RLock()
        self._held_for_fork = False
        _guards.add(self)
        reset_after_fork(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_exc: object) -> None:
        self._lock.release()

    def before_fork(self) -> None:
        """Wait until nobody is inside."""
        # Forks without it once the time is up: a child with a stuck lock of ours is given a new
        # one.
        self._held_for_fork = self._lock.acquire(timeout=self.patience_s)

    def after_fork_in_parent(self) -> None:
        """Let the others go on."""
        if self._held_for_fork:
            self._held_for_fork = False
            self._lock.release()

    def forked(self) -> None:
        """Begin anew in a child: whoever held the lock does not exist there."""
        self._lock = threading.RLock()
        self._held_for_fork = False


_guards: weakref.WeakSet[ForkLock] = weakref.WeakSet()


def _before() -> None:
    # The longest first: nobody else's lock is held meanwhile.
    for guard in sorted(_guards, key=lambda each: -each.patience_s):
        guard.before_fork()


def _in_parent() -> None:
    for guard in list(_guards):
        guard.after_fork_in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent)
