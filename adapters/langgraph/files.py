"""The database files below LangGraph's stores and savers, where they are on this machine."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from langgraph.checkpoint.base import BaseCheckpointSaver

from ..toolkit.sqlite_cleaning import FILE, aclean, clean, database_files
from ..toolkit.sync_async import run_in_client_loop

_POSTGRES = (
    "PostgreSQL keeps deleted rows in its files: run `VACUUM FULL {tables}` and `CHECKPOINT`, "
    "which lock the tables for a while (a plain VACUUM leaves the bytes), and mind the archives "
    "of its log, its replicas and its backups"
)
_SAVED = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
_CHECKPOINTS = "SELECT DISTINCT thread_id, checkpoint_id FROM checkpoints"
_UNKNOWN = "{kind}: whether its files keep what was deleted is not known"


def connection_of(client: Any) -> Any:
    """Return the connection of a client of a database. None: it has none."""
    return getattr(client, "conn", None)


def is_aiosqlite(connection: Any) -> bool:
    """Return whether *connection* is one of aiosqlite."""
    return type(connection).__module__.startswith("aiosqlite")


async def execute(client: Any, statement: str, *values: Any) -> list[Any]:
    """Return the rows of *statement* in a client of SQLite, sync or async. Else none."""
    connection = connection_of(client)
    if isinstance(connection, sqlite3.Connection):
        with client.lock:
            found = connection.execute(statement, values).fetchall()
            connection.commit()
            return found
    if is_aiosqlite(connection):
        return list(await run_in_client_loop(client, lambda: _rows(connection, statement, values)))
    return []


class TableSize(NamedTuple):
    """
    The size of a table.

    Attributes:
        is_sampled: Whether counting took too long, so that rows are told by the newest, and bytes
            by some of them.
    """

    rows: int
    bytes: int
    is_sampled: bool


COUNT_S = 2.0
"""How long a table is counted, in seconds."""


async def sizes(client: Any, table: str, of_row: str) -> TableSize | None:
    """
    Return the size of a table of a client of SQLite. None: it has none.

    Read beside the client where the database is a file: its own connection is the application's.

    Args:
        client: The client.
        table: The table, a literal.
        of_row: The expression for the bytes of a row, a literal.
    """
    rows = await execute(client, FILE)
    if not rows:
        return None
    count = f"SELECT count(*), coalesce(sum({of_row}), 0) FROM {table}"  # noqa: S608 - literals
    ((name,),) = rows
    if not name:
        ((counted, held),) = await execute(client, count)
        return TableSize(counted, held, is_sampled=False)
    until = time.monotonic() + COUNT_S
    path = quote(str(name))
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
        try:
            counted, held = connection.execute(count).fetchone()
            return TableSize(counted, held, is_sampled=False)
        except sqlite3.OperationalError:
            connection.set_progress_handler(None, 0)
            ((newest, some, held),) = connection.execute(
                f"SELECT coalesce(max(rowid), 0), count(*), coalesce(sum(held), 0) FROM (SELECT "  # noqa: S608 - literals
                f"rowid, {of_row} AS held FROM {table} ORDER BY rowid DESC LIMIT 1000)"
            ).fetchall()
            return TableSize(newest, held * newest // max(1, some), is_sampled=True)


async def checkpoints_in(client: Any) -> Iterator[dict[str, str]] | None:
    """Return thread and id of all checkpoints of a saver in SQLite, without their states."""
    rows = await execute(client, _CHECKPOINTS)
    if not rows:
        return None
    return ({"thread_id": thread, "checkpoint_id": found} for thread, found in rows)


async def _rows(connection: Any, statement: str, values: tuple[Any, ...]) -> Any:
    found = await connection.execute_fetchall(statement, values)
    await connection.commit()
    return found


async def clean_files(client: Any) -> tuple[str, ...]:
    """
    Rewrite the files below *client* without deleted rows.

    Returns:
        Notes for the person who asked.
    """
    connection = connection_of(client)
    if isinstance(connection, sqlite3.Connection):
        with client.lock:
            connection.commit()
            clean(connection)
        return ()
    if is_aiosqlite(connection):
        await run_in_client_loop(client, lambda: _acleaned(connection))
        return ()
    if connection is None:
        return () if type(client).__name__.startswith("InMemory") else (_unknown(client),)
    return (_vacuum(client),) if "psycopg" in type(connection).__module__ else (_unknown(client),)


def _vacuum(client: Any) -> str:
    """Return what is left to do for an operator of PostgreSQL: these are tables of theirs."""
    stored = ("store", "store_vectors") if getattr(client, "index_config", None) else ("store",)
    tables = _SAVED if isinstance(client, BaseCheckpointSaver) else stored
    return _POSTGRES.format(tables=", ".join(tables))


async def _acleaned(connection: Any) -> None:
    await connection.commit()
    await aclean(connection)


def _unknown(client: Any) -> str:
    return _UNKNOWN.format(kind=type(client).__name__)


async def files_of(client: Any) -> tuple[Path, ...]:
    """Return the files of a client of SQLite, and those beside them. Else none."""
    rows = await execute(client, FILE)
    return tuple(each for (name,) in rows if name for each in database_files(Path(name)))
