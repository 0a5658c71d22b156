"""The database files below LangGraph's stores and savers, where they are on this machine."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def _connection(client: Any) -> Any:
    return getattr(client, "conn", None)


def _is_aiosqlite(connection: Any) -> bool:
    return type(connection).__module__.startswith("aiosqlite")


async def execute(client: Any, statement: str, *values: Any) -> list[Any]:
    """Return the rows of *statement* in a client of SQLite, sync or async. Else none."""
    connection = _connection(client)
    if isinstance(connection, sqlite3.Connection):
        with client.lock:
            found = connection.execute(statement, values).fetchall()
            connection.commit()
            return found
    if _is_aiosqlite(connection):
        return list(await run_in_client_loop(client, lambda: _rows(connection, statement, values)))
    return []


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
    connection = _connection(client)
    if isinstance(connection, sqlite3.Connection):
        with client.lock:
            connection.commit()
            clean(connection)
        return ()
    if _is_aiosqlite(connection):
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
