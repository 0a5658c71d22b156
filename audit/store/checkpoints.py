"""Signed checkpoints: this log, of so many events, has this root."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...telemetry.text import json_text
from ..proof.merkle import Frontier
from ..proof.note import checkpoint_text
from .tables import LogTables
from .writer import signer_of

Announce = Callable[[str], Sequence[str]]
"""Sends a note elsewhere; returns where."""

KEPT_EVERY, KEPT_EVERY_US = 4_096, 3_600 * 1_000_000
"""Of checkpoints that are made at intervals one is kept after so many events, or so long."""

_COLUMNS = ("size", "created_us", "root", "note", "key_id", "anchors")


def nowhere(_note: str) -> Sequence[str]:
    """Send a note nowhere."""
    return ()


def sign(
    tables: LogTables, announce: Announce = nowhere, *, is_regular: bool = False
) -> tuple[str, int]:
    """
    Sign the log as it is, and keep the note.

    Args:
        tables: The log's.
        announce: Sends the note elsewhere, so that whoever rewrites the log is found out.
        is_regular: Whether there will be another one soon, so that only some are kept: all have
            been sent elsewhere, and the end of the log is signed besides.

    Returns:
        The note, and the size of the log.

    Raises:
        AuditError: It was not kept.
    """
    with tables.writing() as (connection, head):
        root = Frontier.from_bytes(head.size, head.frontier).root()
        signer = signer_of(head.origin, tables.ring)
        note = signer.sign(checkpoint_text(head.origin, head.size, root))
        found: Any = connection.execute(
            "SELECT size, created_us FROM audit_checkpoint ORDER BY size DESC, created_us DESC "
            "LIMIT 1"
        ).fetchone()
        newest_size, newest_us = found or (0, 0)
        created_us = tables.now_us()
        if newest_size == head.size:  # two processes may sign it in the same microsecond
            created_us = max(created_us, newest_us + 1)
        # Sent before it is stored, so that the row can say where to; one that was sent and not
        # stored does no harm.
        anchors = json_text(list(announce(note)))
        is_soon = 0 <= created_us - newest_us < KEPT_EVERY_US
        is_near = head.size - newest_size < KEPT_EVERY and is_soon
        if not (is_regular and is_near):
            row = (head.size, created_us, root, note, signer.key_id, anchors)
            connection.insert("audit_checkpoint", _COLUMNS, [row])
    return note, head.size
