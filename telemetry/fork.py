"""
What to forget in a forked child: locks that a thread of the parent may have held, and such threads.

One hook for the process, weak references only: an object that is gone needs no reset. Where the
lock is somebody else's and cannot be replaced, `fork_guard` delays the fork instead.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Something that must start anew in a forked child."""

    def forked(self) -> None:
        """Called in the child, before any other code there. Must not take a lock of the parent."""
        ...


_living: weakref.WeakSet[Forkable] = weakref.WeakSet()


def reset_after_fork(living: Forkable) -> None:
    """Have ``living.forked()`` called in every child forked from now on."""
    _living.add(living)


def _after_fork() -> None:
    for each in list(_living):
        # One that fails must not leave the others with locks that nobody will ever release.
        with contextlib.suppress(Exception):
            each.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
