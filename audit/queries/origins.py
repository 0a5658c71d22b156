"""The origin of memories: the labels that were sealed with the events of their writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..database.database import marks
from ..store.snapshot import Snapshot

_AT_ONCE = 500
_LABELS = "SELECT memory_ref, min(score) FROM audit_memory WHERE memory_ref IN ({}) GROUP BY 1"
_ELSEWHERE = (
    "SELECT 1 FROM audit_detail d JOIN audit_event e ON e.seq = d.seq "
    "WHERE d.run_ref = ? AND e.writer_id <> ? LIMIT 1"
)


def is_elsewhere(snapshot: Snapshot, run: str, writer_id: str) -> bool:
    """Return whether another writer than *writer_id* has recorded something of *run*."""
    values = snapshot.references.run(run), writer_id
    return snapshot.execute(_ELSEWHERE, values).fetchone() is not None


def labels(snapshot: Snapshot, tags: Sequence[str]) -> dict[str, int]:
    """Return the lowest trust that each of *tags* was sealed with, as far as any was."""
    by_reference = {snapshot.references.memory(each): each for each in tags}
    wanted, found = list(by_reference), dict[str, int]()
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        rows: list[Any] = snapshot.execute(_LABELS.format(marks(len(part))), part).fetchall()
        found |= {by_reference[bytes(ref)]: int(trust) for ref, trust in rows if trust is not None}
    return found
