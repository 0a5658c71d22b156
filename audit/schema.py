"""
The tables of the audit trail, and how an older database becomes one of today.

Rows are only ever added: triggers refuse to change or delete one, and an insert that would replace
one is ignored, which is also what makes a replay harmless. This keeps honest programs honest. It
does not stop whoever may write to the file: for that, ship it elsewhere.

STRICT tables are not used: they need SQLite 3.37, and long-lived distributions have less.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from .errors import AuditError

APPLICATION_ID = 0x6D6E6D61  # "mnma", in the file's header: see PRAGMA application_id

_TABLES = (
    """
    CREATE TABLE audit_event(
      seq INTEGER PRIMARY KEY,         -- order of recording, in this database
      writer_id TEXT NOT NULL,         -- one process incarnation
      writer_seq INTEGER NOT NULL,     -- dense per writer: a gap is a lost event
      occurred_us INTEGER NOT NULL,    -- start, microseconds since 1970 UTC
      recorded_us INTEGER NOT NULL,
      operation TEXT NOT NULL,
      op_class TEXT NOT NULL,
      store TEXT NOT NULL,
      method TEXT NOT NULL,
      collection TEXT,
      status TEXT NOT NULL,
      neutral INTEGER NOT NULL,        -- the caller was given a neutral value
      late INTEGER NOT NULL,           -- the store was still at work
      journal TEXT NOT NULL,           -- of a write it did not take: appended, replayed, lost
      nested INTEGER NOT NULL,         -- inside another operation
      error TEXT,                      -- type of the exception
      duration_us INTEGER NOT NULL,
      waited_us INTEGER NOT NULL,
      hits INTEGER,
      foreign_hits INTEGER NOT NULL,
      top_score REAL,
      size_bytes INTEGER,
      redactions TEXT,                 -- JSON: entity -> count
      subject TEXT,                    -- keyed alias of the customer
      tenant TEXT,
      agent TEXT,
      feature TEXT,
      run TEXT,
      purpose TEXT,
      trace_id TEXT NOT NULL,
      span_id TEXT NOT NULL,
      content TEXT,                    -- JSON, redacted
      UNIQUE(writer_id, writer_seq))
    """,
    """
    CREATE TABLE audit_memory(         -- the memories an event read or wrote
      seq INTEGER NOT NULL,
      rank INTEGER NOT NULL,           -- from 1
      memory_id TEXT NOT NULL,
      score REAL,
      PRIMARY KEY(seq, rank)) WITHOUT ROWID
    """,
    """
    CREATE TABLE audit_usage(          -- what a model call consumed
      seq INTEGER PRIMARY KEY,
      model TEXT NOT NULL,
      provider TEXT,
      node TEXT,
      namespace TEXT,                  -- JSON array
      input_tokens INTEGER NOT NULL,
      output_tokens INTEGER NOT NULL,
      cached_tokens INTEGER NOT NULL,
      cache_write_tokens INTEGER NOT NULL,
      reasoning_tokens INTEGER NOT NULL,
      time_to_first_token_s REAL,
      cost_usd REAL)                   -- NULL: not in the price table
    """,
    "CREATE TABLE audit_key(key_id TEXT PRIMARY KEY, first_used_us INTEGER NOT NULL)",
    "CREATE INDEX audit_event_subject ON audit_event(subject, occurred_us)",
    "CREATE INDEX audit_memory_memory ON audit_memory(memory_id, seq)",
)

_SAME_ROW = {
    "audit_event": "seq = NEW.seq OR (writer_id = NEW.writer_id AND writer_seq = NEW.writer_seq)",
    "audit_memory": "seq = NEW.seq AND rank = NEW.rank",
    "audit_usage": "seq = NEW.seq",
    "audit_key": "key_id = NEW.key_id",
}


def _append_only(table: str, same_row: str) -> tuple[str, ...]:
    refusal = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    # INSERT OR REPLACE deletes without firing a delete trigger, so it is met before it begins.
    exists = f"EXISTS(SELECT 1 FROM {table} WHERE {same_row})"  # noqa: S608 - literals of this module
    skip = "BEGIN SELECT RAISE(IGNORE); END"
    return (
        f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {refusal}",
        f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {refusal}",
        f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {exists} {skip}",
    )


_TRIGGERS = tuple(
    statement for table, row in _SAME_ROW.items() for statement in _append_only(table, row)
)

MIGRATIONS: tuple[tuple[str, ...], ...] = ((*_TABLES, *_TRIGGERS),)
"""Statements that lead from each version to the next; the first lead from an empty file."""

SCHEMA_VERSION = len(MIGRATIONS)


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """
    Return the schema version of a database; 0 for an empty one. Changes nothing.

    Raises:
        AuditError: It is another application's, or a newer version's.
    """
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application_id != APPLICATION_ID and (tables or version):
        raise AuditError(
            f"{path} is the database of another application; nothing in it was changed. "
            "Choose another file with MNEMOSCOPE_AUDIT_URL"
        )
    if version > SCHEMA_VERSION:
        raise AuditError(
            f"the audit database {path} has schema version {version}, this library knows "
            f"{SCHEMA_VERSION}; nothing in it was changed. Upgrade mnemoscope"
        )
    return int(version)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring a database to `SCHEMA_VERSION`, each step in a transaction of its own."""
    while version_of(connection, path) < SCHEMA_VERSION:
        connection.execute("BEGIN EXCLUSIVE")
        try:
            # Read again: another process may have been faster.
            version = version_of(connection, path)
            for statement in MIGRATIONS[version] if version < SCHEMA_VERSION else ():
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {min(version + 1, SCHEMA_VERSION)}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
