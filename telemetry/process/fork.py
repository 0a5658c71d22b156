"""
Resetting of objects in a forked child: locks and threads of the parent are gone there.

One hook for the process, weak references only: an object that is gone needs no reset. Where the
lock is somebody else's and cannot be replaced, `ForkLock` delays the fork instead.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Something that must start anew in a forked child."""

    def forked(self) -> None:
        """Start anew, before any other code in the child. Must not take a parent's lock."""
        ...


# `register_at_fork` cannot be undone: a hook for each object would keep each for ever.
_living: weakref.WeakSet[Forkable] = weakref.WeakSet()


def reset_after_fork(living: Forkable) -> None:
    """Have ``living.forked()`` called in every child forked from now on."""
    _living.add(living)


def _after_fork() -> None:
    # A copy: what starts anew may make something forkable, and a set that grows cannot be walked.
    for each in list(_living):
        # One that fails must not leave the others with locks that nobody will ever release.
        with contextlib.suppress(Exception):
            each.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
