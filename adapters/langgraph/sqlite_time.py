"""
The waits of LangGraph's saver and store on SQLite, made no longer than a call has left.

Each is ended by the thread that waits: that for the saver's lock by a timeout, that for a locked
database by a ``busy_timeout``, and a statement by SQLite's progress handler. `interrupt`, from
another thread, would end every statement on the connection. Nothing ends a wait for a disk.
"""

from __future__ import annotations

import gc
import sqlite3
import threading
from functools import partial
from math import ceil
from types import ModuleType, NoneType
from typing import Any, cast

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ...memory.api import BreaksOff, Call, time_left_s
from ..toolkit.own_methods import OwnMethods

_LOOK_AFTER = 10_000
"""Steps of SQLite's machine, a fraction of a millisecond, from one look at the time to the next."""


def breaks_off(client: Any) -> BreaksOff | None:
    """
    Return what tells whether calls of *client* end by their deadline, and have its waits do so.

    None: it is no saver or store of LangGraph's own on SQLite, or its connection has a handler
    already. SQLite has place for one.
    """
    kind = cast("Any", type(client))
    connection, lock = getattr(client, "conn", None), getattr(client, "lock", None)
    is_known = kind.__module__ in _MODULES and type(lock) in _LOCKS
    if not is_known or type(connection) is not sqlite3.Connection:
        return None
    if type(lock) is not BoundedLock:
        busy_s = _busy_s(connection)
        if busy_s is None:
            return None
        connection.set_progress_handler(_is_over, _LOOK_AFTER)
        lock = client.lock = BoundedLock(lock, connection, busy_s)
    return partial(_may_stay, client, OwnMethods(kind, "contextlib.py"), connection, lock)


def _busy_s(connection: sqlite3.Connection) -> float | None:
    """Return how long *connection* waits for a locked database. None: its handlers are taken."""
    if any(isinstance(each, ModuleType) for each in gc.get_referents(connection)):
        return None  # each handler refers to its module
    try:
        cursor = connection.cursor()
        cursor.row_factory = None
        return float(cursor.execute("PRAGMA busy_timeout").fetchone()[0]) / 1_000
    except sqlite3.Error:
        return None


def _is_over() -> bool:
    """Tell SQLite, on the thread of a statement, whether to end it."""
    return time_left_s() == 0.0


def _may_stay(
    client: Any, methods: OwnMethods, connection: sqlite3.Connection, lock: BoundedLock, _call: Call
) -> bool:
    # Looked at before each call: any of it may be replaced at any time.
    return (
        client.conn is connection
        and client.lock is lock
        and _is_over in gc.get_referents(connection)
        # Somebody else's serializer or embeddings may wait for whatever they like.
        and getattr(client, "embeddings", None) is None
        and getattr(client, "serde", None).__class__ in {JsonPlusSerializer, NoneType}
        and methods.has_all(client)
    )


class BoundedLock:
    """A saver's *lock*, waited for as long as a call has left, as SQLite waits for its database."""

    def __init__(self, lock: Any, connection: sqlite3.Connection, busy_s: float) -> None:
        self._lock = lock
        self._connection = connection
        self._busy_s = busy_s
        self._is_shortened = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lock, name)

    def __enter__(self) -> bool:
        left_s = time_left_s()
        if not self._lock.acquire(timeout=-1 if left_s is None else left_s):
            raise TimeoutError("another call has this connection")
        try:
            left_s = time_left_s()
            if left_s is not None and left_s < self._busy_s:
                self._is_shortened = True
                self._wait(left_s)
        except BaseException:
            self._lock.release()
            raise
        return True

    def __exit__(self, *_exc: object) -> None:
        try:
            if self._is_shortened:
                self._is_shortened = False
                self._wait(self._busy_s)
        finally:
            self._lock.release()

    def _wait(self, seconds: float) -> None:
        self._connection.execute(f"PRAGMA busy_timeout = {ceil(seconds * 1_000)}")


_MODULES = "langgraph.checkpoint.sqlite", "langgraph.store.sqlite.base"
_LOCKS: tuple[Any, ...] = (type(threading.Lock()), BoundedLock)
