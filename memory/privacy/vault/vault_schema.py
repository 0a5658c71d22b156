"""
The tables of a vault's file.

``vault_key`` has a row for each customer and secret: the data key, wrapped with the secret
``key_id``, under the customer's hash by the secret ``looked_up_by``. Both are empty in rows of
version 1, until the secret is found that opens them; ``person`` is missing there, until the
customer is met again. ``vault_secret`` has a row for every secret that was ever written with, and
its lookup key: after a rotation that is wrapped with the new secret, and the old one is not needed
any more.
"""

from __future__ import annotations

import sqlite3

_VERSION = 2
_APPLICATION_ID = 0x6D6E7631  # "mnv1"
_VERSION_1 = (
    "CREATE TABLE vault_key (subject TEXT PRIMARY KEY, wrapped BLOB NOT NULL) WITHOUT ROWID",
    """CREATE TABLE vault_entry (
        subject TEXT NOT NULL, pseudonym TEXT NOT NULL, sealed BLOB NOT NULL,
        PRIMARY KEY (subject, pseudonym)
    ) WITHOUT ROWID""",
    f"PRAGMA application_id = {_APPLICATION_ID}",
)
_VERSION_2 = (
    "ALTER TABLE vault_key ADD COLUMN key_id TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE vault_key ADD COLUMN looked_up_by TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE vault_key ADD COLUMN person TEXT",
    "CREATE TABLE vault_secret (key_id TEXT PRIMARY KEY, lookup BLOB NOT NULL) WITHOUT ROWID",
    # Something was stored, with a secret that nobody noted.
    "INSERT INTO vault_secret SELECT '', x'' WHERE EXISTS (SELECT 1 FROM vault_key)",
    f"PRAGMA user_version = {_VERSION}",
)


def is_current(connection: sqlite3.Connection) -> bool:
    """Return whether the tables are of this version."""
    return _version(connection) == (_APPLICATION_ID, _VERSION)


def prepare(connection: sqlite3.Connection) -> None:
    """
    Make the tables in an empty file, or bring them up from version 1, which loses nothing.

    Raises:
        sqlite3.DatabaseError: The file is something else.
    """
    version = _version(connection)
    is_empty = version == (0, 0) and _number(connection, "schema_version") == 0
    if not is_empty and version != (_APPLICATION_ID, 1):
        raise sqlite3.DatabaseError("it is no vault of this version")
    for statement in (*(_VERSION_1 if is_empty else ()), *_VERSION_2):
        connection.execute(statement)


def _version(connection: sqlite3.Connection) -> tuple[int, int]:
    return _number(connection, "application_id"), _number(connection, "user_version")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    row = connection.execute(f"PRAGMA {pragma}").fetchone()
    return int(row[0])
