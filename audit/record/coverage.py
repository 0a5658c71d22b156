"""What covers each column of each table: see `seals`, and the check of each in `verification`."""

from __future__ import annotations

from enum import StrEnum

from ..database import schema


class Cover(StrEnum):
    """
    What shows that a column was changed by somebody who has no key.

    Attributes:
        CHAINED: The hashes of events, up to the head, which is sealed.
        SEALED: The seal of the head.
        ENCRYPTED: Encryption, bound to its place and its customer, and what is encrypted says it.
        DERIVED: Computed anew, from what is covered.
        SIGNED: A signature of its own.
        SUMMED: The keyed sum of its table, which the head has.
    """

    CHAINED = "chained"
    SEALED = "sealed"
    ENCRYPTED = "encrypted"
    DERIVED = "derived"
    SIGNED = "signed"
    SUMMED = "summed"


_TABLES = {
    "audit_log": Cover.SEALED,
    "audit_event": Cover.DERIVED,
    "audit_detail": Cover.DERIVED,
    "audit_memory": Cover.DERIVED,
    "audit_usage": Cover.DERIVED,
    "audit_tile": Cover.DERIVED,
    "audit_head": Cover.SIGNED,
}
IDENTITIES = ("audit_subject", "audit_subject_alias")
"""Tables whose every change is bound into the event that comes with it, too."""

_COLUMNS = {
    ("audit_log", "schema_version"): Cover.DERIVED,
    ("audit_event", "seq"): Cover.CHAINED,
    ("audit_event", "header"): Cover.CHAINED,
    ("audit_detail", "seq"): Cover.ENCRYPTED,
    ("audit_detail", "subject_uid"): Cover.ENCRYPTED,
    ("audit_detail", "sealed"): Cover.ENCRYPTED,
    ("audit_detail", "expires_us"): Cover.ENCRYPTED,
}

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


def cover_of(table: str, column: str) -> Cover:
    """Return what covers a column. Where nothing else is said, it is summed."""
    return _COLUMNS.get((table, column)) or _TABLES.get(table, Cover.SUMMED)


def summed_tables(version: int | None = None) -> tuple[str, ...]:
    """Return the tables whose rows are summed, as of *version* or today."""
    return tuple(each for each in schema.tables(version) if is_summed(each))


def is_summed(table: str) -> bool:
    """Return whether the rows of a table are summed: of all of ours that nothing else covers."""
    return table not in _TABLES and table in schema.tables()
