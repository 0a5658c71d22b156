"""
What SQLite leaves in its files of rows that were deleted, and how to be rid of it.

A deleted row stays in the pages that are free from then on, and in the write-ahead log. VACUUM
writes the file anew from the rows that are left; emptying the log removes the rest.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_CLEANING = ("PRAGMA secure_delete = ON", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
FILE = "SELECT file FROM pragma_database_list WHERE name = 'main'"
"""Asks a connection for the path of its database; empty in memory."""


def clean(connection: sqlite3.Connection) -> None:
    """
    Write the database of *connection* anew, without what was deleted.

    Raises:
        sqlite3.Error: Somebody else uses it, or there is no room for a copy.
    """
    for statement in _CLEANING:
        connection.execute(statement).fetchall()


async def aclean(connection: Any) -> None:
    """As `clean`, for a connection of aiosqlite."""
    for statement in _CLEANING:
        await connection.execute_fetchall(statement)


def beside(path: Path) -> Iterator[Path]:
    """Yield the database at *path* and the files that belong to it, as far as they exist."""
    names = (path.name, f"{path.name}-wal", f"{path.name}-journal")
    yield from (each for name in names if (each := path.with_name(name)).exists())
