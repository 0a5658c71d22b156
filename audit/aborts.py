"""Aborts of runs, as the trail has them: verdict events of the rule ``abort``."""

from __future__ import annotations

from .database.database import blob
from .decisions import sealed_verdict
from .log import AuditLog
from .store.tree import SealedEvents

_ABORTS = """
    SELECT seq, header FROM audit_event
    WHERE operation = 'verdict' AND method = 'abort' AND seq >= ? AND occurred_us >= ? ORDER BY seq
"""


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
        if snapshot is None:
            return first_seq, frozenset()
        sealed = SealedEvents(snapshot)
        for seq, header in snapshot.stream(_ABORTS, (first_seq, since_us)):
            sealed.check(seq, blob(header))
            found.add(sealed_verdict(header)["evidence"]["run"])
            first_seq = seq + 1
    return first_seq, frozenset(found)
