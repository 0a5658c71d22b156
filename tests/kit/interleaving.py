"""
The work of one process stopped before any of its steps, for another one to do all of its own there.

A step is what others can see: a file that is opened, locked, renamed or removed, a database that is
opened. None is within a turn to write, in which nobody else gets anywhere.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_SEEN = frozenset({"open", "os.remove", "os.rename", "fcntl.flock", "sqlite3.connect"})
_TURNS = "*-lock"
"""The files by whose locks writers of SQLite take turns."""


class _Stop:
    """
    The place in the work of this thread at which another one is let in.

    Attributes:
        steps: How many were taken.
    """

    def __init__(self, folder: Path, at: int, let_in: Callable[[], object]) -> None:
        self._folder = folder
        self._at = at
        self._let_in = let_in
        self._turns: set[int] = set()
        self.steps = 0

    def note(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Count a step, and let the other one in if it is this one."""
        if event == "fcntl.flock" and self._is_turn(*arguments):
            return
        is_open = event == "open" and not str(arguments[0]).startswith(str(self._folder))
        if self._turns or is_open:
            return
        self.steps += 1
        if self.steps == self._at:
            self._let_in()

    def _is_turn(self, fd: int, operation: int) -> bool:
        turns = [each.stat() for each in self._folder.glob(_TURNS)]
        if not any(os.path.samestat(os.fstat(fd), each) for each in turns):
            return False
        (self._turns.discard if operation == fcntl.LOCK_UN else self._turns.add)(fd)
        return True


_stops: dict[int, _Stop] = {}
_is_hooked = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _stops or event not in _SEEN:
        return
    # Not for what it looks at itself, nor for whoever is let in.
    stop = _stops.pop(threading.get_ident(), None)
    if stop is not None:
        try:
            stop.note(event, arguments)
        finally:
            _stops[threading.get_ident()] = stop


def interrupted(
    work: Callable[[], object], folder: Path, at: int, let_in: Callable[[], object]
) -> bool:
    """
    Do *work*, and *let_in* before its step number *at*; return whether it has so many.

    Args:
        work: Done on this thread.
        folder: Files elsewhere are nobody's but its own.
        at: From 1.
        let_in: The whole work of the other one.
    """
    global _is_hooked  # noqa: PLW0603 - there is no way to take a hook back
    if not _is_hooked:
        sys.addaudithook(_hook)
        _is_hooked = True
    stop = _stops[threading.get_ident()] = _Stop(folder, at, let_in)
    try:
        work()
    finally:
        with suppress(KeyError):
            del _stops[threading.get_ident()]
    return stop.steps >= at
