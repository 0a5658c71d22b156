"""
The work of one process stopped before any of its steps, for another one to do all of its own there.

A step is what others can see: a file that is opened, locked, renamed or removed, a database that is
opened, a turn to write that is taken. None is within such a turn: nobody else gets anywhere then.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

_CONNECT, _TURN = "psycopg.connect", "psycopg.pipeline"
_SEEN = frozenset(
    {"open", "os.remove", "os.rename", "fcntl.flock", "sqlite3.connect", _CONNECT, _TURN}
)
_TURNS = "*-lock"
"""The files by whose locks writers of SQLite take turns."""


class _Stop:
    """
    The place in the work of this thread at which another one is let in.

    Attributes:
        steps: How many were taken.
        turns: How many to write in PostgreSQL this thread has just now.
    """

    def __init__(self, folder: Path, at: int, let_in: Callable[[], object]) -> None:
        self._folder = folder
        self._at = at
        self._let_in = let_in
        self._turns: set[int] = set()
        self.turns = 0
        self.steps = 0

    def note(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Count a step, and let the other one in if it is this one."""
        if event == "fcntl.flock" and self._is_turn(*arguments):
            return
        is_open = event == "open" and not str(arguments[0]).startswith(str(self._folder))
        if self._turns or self.turns or is_open:
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


@pytest.fixture
def postgres_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have connections to PostgreSQL, and turns to write there, be steps: Python tells of none."""
    import psycopg

    connect, pipeline = psycopg.connect, psycopg.Connection.pipeline

    def connected(*arguments: Any, **options: Any) -> Any:
        sys.audit(_CONNECT)
        return connect(*arguments, **options)

    @contextmanager
    def turned(self: psycopg.Connection[Any]) -> Generator[psycopg.Pipeline]:
        sys.audit(_TURN)
        stop = _stops.get(threading.get_ident())
        with pipeline(self) as turn:
            if stop is not None:
                stop.turns += 1
            try:
                yield turn
            finally:
                if stop is not None:
                    stop.turns -= 1

    monkeypatch.setattr(psycopg, "connect", connected)
    monkeypatch.setattr(psycopg.Connection, "pipeline", turned)
