"""
The tables of the audit trail, and the migrations of older databases.

Written once, in the words of SQLite; a dialect translates them. What is sealed is in
`audit_event.header` alone: the other columns of that table repeat parts of it, for queries, and
`verify` compares them. What may have to be erased is in tables of its own: details are encrypted
for each customer, memories and runs are keyed hashes.

Sealed rows are only ever added. Triggers refuse to change or delete one, save those that retention
has given up (`audit_log.first_seq`). This keeps honest programs honest; that somebody went past
them is what the hashes show.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import lru_cache
from typing import NamedTuple

from .errors import AuditError

APPLICATION_ID = 0x6D6E6D61  # "mnma", in the head of an SQLite file: see PRAGMA application_id

TABLES = (
    """
    CREATE TABLE audit_log(            -- one row: the end of the log, which writers queue for
      origin TEXT PRIMARY KEY,         -- the log's name, random
      size INTEGER NOT NULL,           -- sealed events
      operations INTEGER NOT NULL,     -- those that are operations, not about the log itself
      first_seq INTEGER NOT NULL,      -- retention has removed what is before it
      prev_leaf BLOB NOT NULL,
      frontier BLOB NOT NULL,          -- right edge of the Merkle tree
      recorded_us INTEGER NOT NULL,    -- of the newest event: time never runs backwards here
      epoch INTEGER NOT NULL,          -- grows whenever keys of customers change
      schema_version INTEGER NOT NULL,
      created_us INTEGER NOT NULL)
    """,
    """
    CREATE TABLE audit_event(          -- sealed, no personal data
      seq INTEGER PRIMARY KEY,         -- dense, from 0: the index of its leaf
      writer_id TEXT NOT NULL,         -- one process incarnation
      writer_seq INTEGER NOT NULL,     -- dense per writer, from 1: a gap is a lost event
      kind TEXT NOT NULL,              -- operation, or log: about the log itself
      occurred_us INTEGER NOT NULL,    -- start, microseconds since 1970 UTC
      recorded_us INTEGER NOT NULL,
      operation TEXT NOT NULL,
      op_class TEXT NOT NULL,
      store TEXT NOT NULL,
      method TEXT NOT NULL,
      status TEXT NOT NULL,
      nested INTEGER NOT NULL,         -- inside another operation
      duration_us INTEGER NOT NULL,
      feature TEXT,
      header BLOB NOT NULL,            -- canonical JSON (RFC 8785)
      leaf BLOB NOT NULL)              -- SHA-256(0x00 || header)
    """,
    """
    CREATE TABLE audit_detail(         -- erasable
      seq INTEGER PRIMARY KEY,
      subject_uid TEXT NOT NULL,
      occurred_us INTEGER NOT NULL,
      run_ref BLOB,                    -- keyed hash
      place_ref BLOB,                  -- keyed hash of store and collection
      dek_id TEXT NOT NULL,
      salt BLOB NOT NULL,              -- header.detail_commit = HMAC-SHA-256(salt, plaintext)
      sealed BLOB NOT NULL,            -- nonce || AES-256-GCM
      expires_us INTEGER NOT NULL)
    """,
    """
    CREATE TABLE audit_memory(         -- erasable: the memories that an event read or wrote
      seq INTEGER NOT NULL,
      rank INTEGER NOT NULL,           -- from 1
      memory_ref BLOB NOT NULL,        -- keyed hash
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
    """
    CREATE TABLE audit_subject(        -- a customer, or the nobody of a tenant
      subject_uid TEXT PRIMARY KEY,    -- random
      kind TEXT NOT NULL,              -- customer, nobody
      dek_id TEXT NOT NULL,
      dek_wrapped BLOB,                -- NULL: shredded
      kek_id TEXT NOT NULL,
      state TEXT NOT NULL,             -- active, merged, erased
      merged_into TEXT,
      created_us INTEGER NOT NULL,
      erased_us INTEGER)
    """,
    """
    CREATE TABLE audit_subject_alias(  -- keyed hashes by which a customer is found
      alias TEXT PRIMARY KEY,
      key_id TEXT NOT NULL,
      id_type TEXT NOT NULL,           -- customer, nobody, or what else identifies them
      subject_uid TEXT NOT NULL)
    """,
    """
    CREATE TABLE audit_key(            -- the log's own key, wrapped with each secret in use
      key_id TEXT PRIMARY KEY,
      wrapped BLOB NOT NULL,
      verifier_key TEXT NOT NULL,      -- checks the checkpoints that this secret signed
      first_used_us INTEGER NOT NULL)
    """,
    """
    CREATE TABLE audit_tile(           -- full subtrees; level 0: 256 leaf hashes that were pruned
      level INTEGER NOT NULL,
      idx INTEGER NOT NULL,
      hash BLOB NOT NULL,
      PRIMARY KEY(level, idx)) WITHOUT ROWID
    """,
    """
    CREATE TABLE audit_checkpoint(
      size INTEGER NOT NULL,
      created_us INTEGER NOT NULL,
      root BLOB NOT NULL,
      note TEXT NOT NULL,              -- C2SP signed note
      key_id TEXT NOT NULL,
      anchors TEXT NOT NULL,           -- JSON array: where else it was sent
      PRIMARY KEY(size, created_us)) WITHOUT ROWID
    """,
    # Without a WHERE, events about the log itself would need counters of their own.
    """
    CREATE UNIQUE INDEX audit_event_writer ON audit_event(writer_id, writer_seq)
      WHERE kind = 'operation'
    """,
    # Few rows, found without reading all the others.
    "CREATE INDEX audit_event_log ON audit_event(operation, seq) WHERE kind = 'log'",
    "CREATE INDEX audit_detail_subject ON audit_detail(subject_uid, occurred_us, seq)",
    "CREATE INDEX audit_detail_run ON audit_detail(run_ref, seq)",
    "CREATE INDEX audit_memory_ref ON audit_memory(memory_ref, seq)",
    "CREATE INDEX audit_alias_subject ON audit_subject_alias(subject_uid)",
)

_OLDEST = 2
"""Version 1 was never released: a plain table without seals."""

HEADS = (
    """
    CREATE TABLE audit_head(           -- one row: the end of the log, signed; replaced as it grows
      place INTEGER PRIMARY KEY,       -- 0
      note TEXT NOT NULL)              -- C2SP signed note
    """,
)
"""The migration since which the end of the log is signed whenever it moves."""

SPELLINGS = (
    "ALTER TABLE audit_subject_alias ADD COLUMN folded TEXT",  # keyed hash, without tenant
    "ALTER TABLE audit_subject_alias ADD COLUMN sealed BLOB",  # tenant and spelling, encrypted
    "CREATE INDEX audit_alias_folded ON audit_subject_alias(folded)",
)
"""Finds a customer under any tenant, and by any spelling of an id. NULL: not seen since."""

SEALING = (
    # Another name, so that a process of an older version, which seals nothing, fails here: its
    # events wait in its spool until it is started anew.
    "ALTER TABLE audit_log RENAME COLUMN recorded_us TO newest_us",
    "ALTER TABLE audit_log ADD COLUMN sealed_from INTEGER",  # rows of older events are covered less
    "ALTER TABLE audit_log ADD COLUMN sums TEXT",  # JSON: keyed sum of the rows, by table
    "ALTER TABLE audit_log ADD COLUMN seal BLOB",  # keyed hash of this row
)
"""The migration since which no row verifies that was made without the key; see `seals`."""

VERDICTS = (
    # Some read what rules and humans decided while a call waits.
    """
    CREATE INDEX audit_event_verdict ON audit_event(method, seq) WHERE operation = 'verdict'
    """,
)
"""The migration since which verdicts are found by their rule, without reading all events."""

PARTITIONS: tuple[str, ...] = ()
"""
The migration since which tables that grow may be partitioned in PostgreSQL.

New ones are. Those with events stay plain until `mnemoscope audit partition`, which reads them.
"""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    # Few customers are merged into others: found without reading all of them.
    (
        """
        CREATE INDEX audit_subject_merged ON audit_subject(merged_into)
          WHERE merged_into IS NOT NULL
        """,
    ),
    # What the next run of an erasure looks for; the row goes when it is done.
    (
        """
        CREATE TABLE audit_erasure(
          request TEXT PRIMARY KEY,        -- as in the events that began it
          key_id TEXT NOT NULL,
          sealed BLOB NOT NULL)            -- nonce || AES-256-GCM
        """,
    ),
    HEADS,
    SPELLINGS,
    SEALING,
    VERDICTS,
    PARTITIONS,
)
"""
Statements of the migration from each version to the next, the first from `_OLDEST`.

Rows that are there already keep their seals as long as a new column is NULL in them.
"""


def newest_version() -> int:
    """Return the version that `TABLES` and all `MIGRATIONS` make."""
    return _OLDEST + len(MIGRATIONS)


def version_of(migration: tuple[str, ...]) -> int:
    """Return the version that one of `MIGRATIONS` makes."""
    return _OLDEST + 1 + MIGRATIONS.index(migration)


def check_version(version: int, label: str) -> None:
    """
    Refuse a database of a *version* that this library cannot read; 0: an empty one.

    Raises:
        AuditError: It is newer, or from before the first release.
    """
    if version > newest_version():
        raise AuditError(
            f"{label} has schema version {version}, this library knows {newest_version()}; "
            "nothing in it was changed. Upgrade mnemoscope"
        )
    if 0 < version < _OLDEST:
        raise AuditError(
            f"{label} was made before the first release, and is not sealed; nothing in it was "
            "changed. Move it away: a new one is made in its place"
        )


def steps_from(version: int) -> tuple[tuple[str, ...], ...]:
    """Return the statements of each migration from *version* on; at 0 those of all tables."""
    if version == 0:
        return (TABLES, *MIGRATIONS)
    return MIGRATIONS[version - _OLDEST :]


def version_after(version: int) -> int:
    """Return the version after the next migration."""
    return max(version + 1, _OLDEST)


def statements_of(version: int) -> list[str]:
    """Return all statements that make a database of *version*."""
    return [*TABLES, *(each for step in MIGRATIONS[: version - _OLDEST] for each in step)]


def tables(version: int | None = None) -> tuple[str, ...]:
    """Return the names of all tables, as of *version* or today."""
    return tuple(_definitions(version))


def columns_of(table: str, version: int | None = None) -> tuple[str, ...]:
    """Return the columns of *table*, as of *version* or today."""
    return tuple(_definitions(version)[table].types)


def key_of(table: str, version: int | None = None) -> tuple[str, ...]:
    """Return the columns of the primary key of *table*; none, where it has none."""
    return _definitions(version)[table].key


def required_of(table: str, version: int | None = None) -> frozenset[str]:
    """Return the columns of *table* that are never NULL."""
    found = _definitions(version)[table]
    return frozenset({*found.required, *found.key})


def types_of(
    table: str,
    columns: tuple[str, ...] | None,
    named: Callable[[str], str],
    version: int | None = None,
) -> list[str]:
    """Return the types of *columns*, or all of them, as another dialect calls them."""
    types = _definitions(version)[table].types
    return [named(types[each]) for each in columns or types]


class _Definition(NamedTuple):
    types: dict[str, str]
    required: frozenset[str]
    key: tuple[str, ...]


def _definitions(version: int | None) -> dict[str, _Definition]:
    return _read(tuple(statements_of(newest_version() if version is None else version)))


@lru_cache(16)
def _read(statements: tuple[str, ...]) -> dict[str, _Definition]:
    # SQLite reads its own words best: no parser of ours has to know what a migration may say.
    with closing(sqlite3.connect(":memory:")) as fresh:
        for each in statements:
            fresh.execute(each)
        names = fresh.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")
        return {name: _definition(fresh, name) for (name,) in names.fetchall()}


def _definition(fresh: sqlite3.Connection, table: str) -> _Definition:
    columns = fresh.execute(f"PRAGMA table_info({table})").fetchall()
    key = sorted((place, name) for _number, name, *_type, place in columns if place)
    return _Definition(
        {name: its_type for _number, name, its_type, *_rest in columns},
        frozenset(name for _number, name, _type, is_required, *_rest in columns if is_required),
        tuple(name for _place, name in key),
    )
