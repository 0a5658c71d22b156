"""The origin of memories: the labels that were sealed with the events of their writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..database.database import marks
from ..store.snapshot import Snapshot

_AT_ONCE = 500
_LABELS = "SELECT memory_ref, min(score) FROM audit_memory WHERE memory_ref IN ({}) GROUP BY 1"


def labels(snapshot: Snapshot, tags: Sequence[str]) -> dict[str, int]:
    """Return the lowest trust that each of *tags* was sealed with, as far as any was."""
    by_reference = {snapshot.references.memory(each): each for each in tags}
    wanted, found = list(by_reference), dict[str, int]()
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        rows: list[Any] = snapshot.execute(_LABELS.format(marks(len(part))), part).fetchall()
        found |= {by_reference[bytes(ref)]: int(trust) for ref, trust in rows if trust is not None}
    return found
