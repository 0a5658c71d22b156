# ruff: noqa: S608 - an attacker composes what they like
"""
Somebody who has the audit database and its key, and makes all that they changed fit again.

They know how a log is made: from its rows as they are now, the columns and headers of events, the
chain, the tree, the head, the checkpoints, the sums and all signatures are made anew.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from mnemoscope.audit import AuditLog
from mnemoscope.audit.database.schema import columns_of
from mnemoscope.audit.proof.merkle import Frontier
from mnemoscope.audit.record.coverage import summed_tables
from mnemoscope.audit.record.header import sealed
from mnemoscope.audit.store.kept_rows import table_sum
from mnemoscope.audit.store.writer import Head
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.tampering import unguarded

SEALED_AS = {
    "writer_id": "writer",
    "writer_seq": "wseq",
    "occurred_us": "occurred_at",
    "recorded_us": "recorded_at",
}
SIGNED = ("audit_checkpoint", "audit_head")


def forge(path: Path, keys: SubjectKeys, target: str) -> None:
    """Make the log at *path* fit what was done to *target*, a table or a column of it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with unguarded(connection):
            chain(connection, from_headers=target in {"audit_event.header", "audit_event.leaf"})
            for table in SIGNED:
                if not target.startswith(table):
                    connection.execute(f"DELETE FROM {table}")
        log = AuditLog(path, keys)
        reseal(log, connection)
    if not target.startswith(SIGNED):
        log.checkpoint_now()
    log.close()


def chain(connection: sqlite3.Connection, *, from_headers: bool) -> None:
    """Have events follow one another, in a tree, under a head that has them."""
    names = columns_of("audit_event")[:-2]
    (origin,) = connection.execute("SELECT origin FROM audit_log").fetchone()
    rows = connection.execute("SELECT * FROM audit_event ORDER BY seq").fetchall()
    prev, leaves, operations, newest_us = bytes(32), [], 0, 0
    for row in rows:
        values = dict(zip(names, row, strict=False))
        header = json.loads(bytes(row[-2]))
        if from_headers:
            values = {name: header[SEALED_AS.get(name, name)] for name in names}
        else:
            sealed_as = {SEALED_AS.get(name, name): value for name, value in values.items()}
            header |= {name: each for name, each in sealed_as.items() if header[name] != each}
        header |= {"log": origin, "prev": prev.hex()}
        text = sealed(header)
        prev = sha256(b"\0" + text).digest()
        leaves.append(prev)
        operations += values["kind"] == "operation"
        newest_us = max(newest_us, values["recorded_us"])
        changes = ", ".join(f"{name} = ?" for name in (*names, "header", "leaf"))
        given = (*values.values(), text, prev, row[0])
        connection.execute(f"UPDATE audit_event SET {changes} WHERE seq = ?", given)
    frontier = Frontier()
    tiles = frontier.extend(leaves)
    connection.execute("DELETE FROM audit_tile")
    connection.executemany("INSERT INTO audit_tile(level, idx, hash) VALUES (?, ?, ?)", tiles)
    connection.execute(
        "UPDATE audit_log SET size = ?, operations = ?, prev_leaf = ?, frontier = ?, newest_us = ?",
        (len(rows), operations, prev, frontier.to_bytes(), newest_us),
    )


def reseal(log: AuditLog, connection: sqlite3.Connection) -> None:
    """Make the sums of the tables and the seal of the head anew."""
    with log.reading() as snapshot:
        seals = snapshot.seals
        sums = {
            table: seals.masked(table, table_sum(snapshot, seals, table))
            for table in summed_tables(snapshot.version)
        }
        found: dict[str, Any] = {**snapshot.head, "sums": json.dumps(sums)}
    head = {name: found[name] for name in Head._fields if name != "seal"}
    connection.execute("UPDATE audit_log SET sums = ?, seal = ?", (found["sums"], seals.head(head)))
