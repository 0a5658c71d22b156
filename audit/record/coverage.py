"""The tables whose rows are summed, since nothing else covers them: see `seals`."""

from __future__ import annotations

from ..database import schema

_COVERED_OTHERWISE = frozenset(
    {
        # By the seal of the head.
        "audit_log",
        # By the hashes of events, or by encryption bound to its place: rows repeat what these say,
        # and `verify` computes them anew.
        *("audit_event", "audit_detail", "audit_memory", "audit_usage", "audit_tile"),
        # By a signature of its own.
        "audit_head",
    }
)
IDENTITIES = ("audit_subject", "audit_subject_alias")
"""Tables whose every change is bound into the event that comes with it, too."""

NOT_COVERED = (
    (
        "the whole database put back as it was earlier: only a checkpoint that is kept elsewhere "
        "shows it (--checkpoint)"
    ),
    (
        "events that are not in the database yet: those in queues, and a spool that is removed, or "
        "put back as it was, together with its roll"
    ),
    "space in the files that no row or index uses, and the planner's statistics",
)
"""What nothing here vouches for."""


def summed_tables(version: int | None = None) -> tuple[str, ...]:
    """Return the tables whose rows are summed, as of *version* or today."""
    return tuple(each for each in schema.tables(version) if is_summed(each))


def is_summed(table: str) -> bool:
    """Return whether the rows of a table are summed: of all of ours that nothing else covers."""
    return table not in _COVERED_OTHERWISE and table in schema.tables()
