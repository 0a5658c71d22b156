"""Thread and loop bounds of LangGraph's stores and savers."""

from __future__ import annotations

import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from ..toolkit.own_methods import OwnMethods
from ..toolkit.sync_async import loop_of, running_loop


def stays(base: type, *, thread_bound: bool) -> Callable[[Any], bool]:
    """
    Return what tells of a store or saver whether its synchronous calls stay on their thread.

    Those of a `thread_bound` one must. Those of dictionaries in this process may: nothing in them
    waits for anything, and two hand-overs between threads cost more than they do.

    Args:
        base: Its class.
        thread_bound: See `is_thread_bound`.
    """
    if thread_bound:
        return lambda _inner: True
    if base is InMemoryStore:
        return _embeds_nothing
    return _is_of_dictionaries if base is InMemorySaver else in_own_loop


def _embeds_nothing(inner: Any) -> bool:
    return inner.__class__ is InMemoryStore and inner.index_config is None


def _is_of_dictionaries(inner: Any) -> bool:
    return inner.__dict__["storage"].__class__ is defaultdict and _OWN.has_all(inner)


_OWN = OwnMethods(InMemorySaver)


def in_own_loop(inner: Any) -> bool:
    """
    Tell whether an asynchronous store is being called synchronously in its own event loop.

    It raises `asyncio.InvalidStateError` then, if it is called on this thread; from a worker it
    would wait for the loop, which waits for the worker.
    """
    running = running_loop()
    return running is not None and loop_of(inner) is running


def is_shared(inner: Any) -> bool:
    """Tell whether other machines can use the database of *inner*: unless it is known not to be."""
    if isinstance(inner, (InMemoryStore, InMemorySaver)):
        return False
    connection = getattr(inner, "conn", None)
    is_sqlite = isinstance(connection, sqlite3.Connection)
    return not (is_sqlite or type(connection).__module__.startswith("aiosqlite"))


def is_thread_bound(inner: Any) -> bool:
    """Tell whether *inner* holds a connection of sqlite3 that only its own thread may use."""
    connection = getattr(inner, "conn", None)
    if not isinstance(connection, sqlite3.Connection):
        return False
    refused: list[bool] = []

    def use() -> None:
        try:
            connection.cursor().close()
        except sqlite3.ProgrammingError:
            refused.append(True)

    elsewhere = threading.Thread(target=use, name="mnemoscope-probe")
    elsewhere.start()
    elsewhere.join()
    return bool(refused)
