"""Aborts of runs, as the trail has them: verdict events of the rule ``abort``."""

from __future__ import annotations

from .decisions import sealed_verdicts
from .log import AuditLog


def aborted_runs(log: AuditLog, first_seq: int, since_us: int) -> tuple[int, frozenset[str]]:
    """
    Return the runs that were aborted, by `SubjectKeys.run_reference`, and where to go on reading.

    Args:
        log: The log.
        first_seq: The first event that is read.
        since_us: Those before are left out; since 1970 UTC.

    Raises:
        AuditError: The log cannot be read.
        TamperedError: One of them is not what was sealed.
    """
    found: set[str] = set()
    with log.verdicts.begun() as snapshot:
        aborts = () if snapshot is None else sealed_verdicts(snapshot, first_seq, "abort")
        for seq, _rule, at_us, verdict in aborts:
            if at_us >= since_us:
                found.add(verdict["evidence"]["run"])
            first_seq = seq + 1
    return first_seq, frozenset(found)
