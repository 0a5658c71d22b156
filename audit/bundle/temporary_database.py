"""The database of an export under way: what does not fit into memory, and is gone at its end."""

from __future__ import annotations

import sqlite3


def temporary_database() -> sqlite3.Connection:
    """Return a temporary database, empty, in a transaction that never ends."""
    database = sqlite3.connect("", isolation_level=None)
    # Nobody reads it after a crash: a wait for the disk at each spill would be for nothing.
    database.execute("PRAGMA synchronous = OFF")
    database.execute("BEGIN")
    return database
