"""
Removal of deleted rows from SQLite's files.

A deleted row stays in the pages that are free from then on, and in the write-ahead log. VACUUM
writes the file anew from the rows that are left; emptying the log removes the rest.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# VACUUM writes a new file, and the log would still have the old pages.
_CLEANING = ("PRAGMA secure_delete = ON", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
FILE = "SELECT file FROM pragma_database_list WHERE name = 'main'"
"""Query for the path of a connection's database; empty in memory."""


def clean(connection: sqlite3.Connection) -> None:
    """
    Rewrite the database of *connection* without deleted rows.

    Raises:
        sqlite3.Error: Another connection uses it, or there is no room for a copy.
    """
    for statement in _CLEANING:
        connection.execute(statement).fetchall()


async def aclean(connection: Any) -> None:
    """As `clean`, for a connection of aiosqlite."""
    for statement in _CLEANING:
        await connection.execute_fetchall(statement)


def database_files(path: Path) -> Iterator[Path]:
    """Yield the database at *path* and the files that belong to it, as far as they exist."""
    names = (path.name, f"{path.name}-wal", f"{path.name}-journal")
    yield from (each for name in names if (each := path.with_name(name)).exists())
