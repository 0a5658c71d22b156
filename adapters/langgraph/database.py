"""The database that one of LangGraph's stores or savers writes to."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from inspect import getclosurevars
from typing import Any

from ...memory.database import Database
from ..toolkit.databases import in_file, result_or_none
from ..toolkit.proxy import inner_of

_IN_MEMORY = frozenset({"", ":memory:"})


def database_of(client: Any) -> Database | None:
    """Return the database of a store or saver of LangGraph's own, or of a subclass of one."""
    return result_or_none(lambda: _database(client))


def _database(client: Any) -> Database | None:
    while (inner := inner_of(client)) is not None:  # another scope guards it as well
        client = inner
    packages = (".".join(base.__module__.split(".")[:3]) for base in type(client).__mro__)
    tell = next((_KINDS[each] for each in packages if each in _KINDS), None)
    return None if tell is None else tell(client)


def _sqlite(client: Any) -> Database | None:
    connection = client.conn
    is_sync = isinstance(connection, sqlite3.Connection)
    path = _main_file(connection) if is_sync else _given_path(connection)
    if path is None:
        return None
    if path in _IN_MEMORY:
        # A connection of sqlite3 cannot be referred to weakly.
        return Database.in_memory(client if type(connection) is sqlite3.Connection else connection)
    return in_file("sqlite", path)


def _main_file(connection: sqlite3.Connection) -> str | None:
    """Return the path of the main database; SQLite tells it without a lock on the file."""
    cursor = connection.cursor()
    cursor.row_factory = None  # rows as they are, whatever the connection makes of them
    rows = cursor.execute("PRAGMA database_list").fetchall()
    return next((os.fsdecode(file) for number, _name, file in rows if number == 0), None)


def _given_path(connection: Any) -> str | None:
    """Return the path given to ``aiosqlite.connect``: the connection answers in its loop alone."""
    connector = connection._connector  # noqa: SLF001 - it is told nowhere else
    if connector.__module__ != "aiosqlite.core":
        return None
    return os.fsdecode(getclosurevars(connector).nonlocals["database"])


def _postgresql(client: Any) -> Database | None:
    from ..toolkit.postgresql import postgres_database  # noqa: PLC0415 - not without psycopg

    return postgres_database(client.conn)


_KINDS: Mapping[str, Callable[[Any], Database | None]] = {
    "langgraph.store.memory": Database.in_memory,
    "langgraph.checkpoint.memory": Database.in_memory,
    "langgraph.store.sqlite": _sqlite,
    "langgraph.checkpoint.sqlite": _sqlite,
    "langgraph.store.postgres": _postgresql,
    "langgraph.checkpoint.postgres": _postgresql,
}
"""By the package of the class, so that none is imported that is not installed."""
