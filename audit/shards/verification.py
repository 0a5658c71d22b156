"""The verification of all shards, and of the checkpoints over them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..log import AuditLog
from ..sink.spool import spool_stats
from ..store.departed import all_declared, all_recorded
from ..verification.report import Verification
from ..verification.whole import verify
from ..verification.writers import Elsewhere, MissingRange, Writers
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
    there = [each.tables.exists() for each in trail.shards]
    reports = [
        verify(log, elsewhere=partial(elsewhere_of, log), **options) if its else Verification()
        for log, its in zip(trail.shards, there, strict=True)
    ]
    return reports, check_notes(trail, checkpoints, reports)


def elsewhere_of(log: AuditLog) -> Elsewhere:
    """Return what is beside a shard, read after it: what has come into it since counts as well."""
    writers, gaps = Writers(), list[MissingRange]()
    others = [each for each in log.trail.shards if each is not log]
    spools = [each.spool_path for each in others if each.spool_path is not None]
    has_spool = any(spool_stats(each).events for each in spools)
    for each in (*others, log):
        with each.begun() as snapshot:
            if snapshot is None:
                continue
            if each is not log:
                begun = dict[str, int]()
                for writer, first, last in all_recorded(snapshot.connection):
                    writers.add_range(writer, first, last)
                    begun[writer] = min(first, begun.get(writer, first))
                if snapshot.first_seq:  # what retention has removed was there
                    gaps += (MissingRange(writer, 1, first - 1) for writer, first in begun.items())
                gaps += (MissingRange(*its) for its in all_declared(snapshot.connection))
            else:
                gaps += (MissingRange(*its) for its in all_recorded(snapshot.connection))
    return Elsewhere(writers, gaps, has_spool)
