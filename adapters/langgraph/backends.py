"""
Failures and thread bounds of LangGraph's stores and savers.

Their databases' drivers are not imported here. PEP 249 gives the exceptions of all of them the same
names, and psycopg, sqlite3 and the rest tell more by attributes.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

_FAILURES = frozenset(
    {
        "OperationalError",  # PEP 249: sqlite3, psycopg, pymysql…
        "InterfaceError",
        "ConnectionDoesNotExistError",  # asyncpg
        "ConnectionFailure",  # pymongo
        "ConnectionError",  # redis
        "TimeoutError",
        "TransportError",  # httpx, under whatever computes embeddings
        "APIConnectionError",  # openai, anthropic
    }
)
_TRANSIENT = frozenset({408, 429})
_SERVER_ERROR = 500
_REFUSED_LOGIN = "28"  # SQLSTATE class
_LOOPS = ("loop", "_loop")


def store_failed(exc: BaseException) -> bool:
    """Tell a database that is down, slow or full from a caller's mistake."""
    if isinstance(exc, OSError):
        return True
    status = getattr(exc, "status_code", None)
    if isinstance(status, int):
        return status in _TRANSIENT or status >= _SERVER_ERROR
    if _is_mistake(exc):
        return False
    return any(each.__name__ in _FAILURES for each in type(exc).__mro__)


def _is_mistake(exc: BaseException) -> bool:
    # Operational by name only: a table that does not exist, a password that is wrong.
    if getattr(exc, "sqlite_errorname", None) == "SQLITE_ERROR":
        return True
    return str(getattr(exc, "sqlstate", None) or "").startswith(_REFUSED_LOGIN)


def in_own_loop(inner: Any) -> bool:
    """
    Tell whether an asynchronous store is being called synchronously in its own event loop.

    It raises `asyncio.InvalidStateError` then, if it is called on this thread; from a worker it
    would wait for the loop, which waits for the worker.
    """
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        return False
    return any(getattr(inner, name, None) is running for name in _LOOPS)


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
