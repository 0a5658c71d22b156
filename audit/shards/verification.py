"""The verification of all shards, and of the checkpoints over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..log import AuditLog
from ..verification.report import Verification
from ..verification.whole import verify
from .super_checkpoint import check_notes, is_note


def verify_shards(
    trail: AuditLog, *, checkpoints: Sequence[str] = (), **options: Any
) -> tuple[list[Verification], int]:
    """
    Recompute every shard, and hold the checkpoints over all of them against them.

    Args:
        trail: The shards.
        checkpoints: Signed notes that were kept elsewhere, over shards.
        options: As of `verify`.

    Returns:
        A report for each shard, and the number of notes over them.

    Raises:
        AuditError: A shard that is there cannot be read.
        ValueError: A checkpoint from elsewhere is none over shards: it is held against its shard.
    """
    if not all(map(is_note, checkpoints)):
        raise ValueError("the checkpoint of one shard: name the shard with --shard N")
    there = [each.tables.database.exists() for each in trail.shards]
    reports = [
        verify(log, **options) if its else Verification()
        for log, its in zip(trail.shards, there, strict=True)
    ]
    return reports, check_notes(trail, checkpoints, reports)
