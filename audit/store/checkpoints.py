"""Signed checkpoints: this log, of so many events, has this root."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...telemetry.event.text import json_text
from ..proof.merkle import Frontier
from ..proof.note import checkpoint_text
from .tables import LogTables
from .writer import signer_of

Announce = Callable[[str], Sequence[str]]
"""Sends a note elsewhere; returns where."""

_COLUMNS = ("size", "created_us", "root", "note", "key_id", "anchors")


def nowhere(_note: str) -> Sequence[str]:
    """Send a note nowhere."""
    return ()


def sign(tables: LogTables, announce: Announce = nowhere) -> tuple[str, int]:
    """
    Sign the log as it is, and keep the note.

    Args:
        tables: The log's.
        announce: Sends the note elsewhere, so that whoever rewrites the log is found out.

    Returns:
        The note, and the size of the log.

    Raises:
        AuditError: It was not kept.
    """
    with tables.writing() as (connection, head):
        root = Frontier.from_bytes(head.size, head.frontier).root()
        signer = signer_of(head.origin, tables.ring)
        note = signer.sign(checkpoint_text(head.origin, head.size, root))
        newest: Any = connection.execute(
            "SELECT max(created_us) FROM audit_checkpoint WHERE size = ?", (head.size,)
        ).fetchone()
        # Two processes may sign the same size in the same microsecond.
        created_us = max(tables.now_us(), (newest[0] or 0) + 1)
        anchors = json_text(list(announce(note)))
        row = (head.size, created_us, root, note, signer.key_id, anchors)
        connection.insert("audit_checkpoint", _COLUMNS, [row])
    return note, head.size
