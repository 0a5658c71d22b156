"""What rules read in the trail: labels of memories, and what others have done in a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from ..store.snapshot import Snapshot

_LABELS = (
    "SELECT memory_ref, occurred_us, score FROM ("
    "SELECT m.memory_ref, e.occurred_us, m.score, row_number() OVER "
    "(PARTITION BY m.memory_ref ORDER BY e.occurred_us DESC, m.score) place "
    "FROM audit_memory m JOIN audit_event e ON e.seq = m.seq "
    "WHERE m.memory_ref IN ({}) AND m.score IS NOT NULL) AS written WHERE place = 1"
)
"""Of two at once the lower counts."""

_ELSEWHERE = (
    "SELECT 1 FROM audit_detail d JOIN audit_event e ON e.seq = d.seq "
    "WHERE d.run_ref = ? AND e.writer_id <> ? LIMIT 1"
)

_HEADERS = (
    "SELECT e.header FROM audit_detail d JOIN audit_event e ON e.seq = d.seq "
    "WHERE d.run_ref = ? AND e.writer_id <> ? ORDER BY d.seq DESC LIMIT ?"
)


def is_elsewhere(snapshot: Snapshot, run: str, writer_id: str) -> bool:
    """Return whether another writer than *writer_id* has recorded something of *run*."""
    values = snapshot.references.run(run), writer_id
    return snapshot.execute(_ELSEWHERE, values).fetchone() is not None


def run_headers(
    snapshot: Snapshot, tenant: str | None, run: str, writer_id: str, most: int
) -> list[dict[str, Any]]:
    """Return the headers of a run's events that others recorded, the latest first."""
    values = snapshot.references.run(run), writer_id, most
    # A run's name is the application's, and two tenants may use the same.
    wanted = None if tenant is None else snapshot.references.tenant(tenant)
    found = (orjson.loads(bytes(header)) for (header,) in snapshot.execute(_HEADERS, values))
    return [each for each in found if each.get("tenant") == wanted]


def labels(snapshots: Iterable[Snapshot], tags: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return when each of *tags* was written last, in µs since 1970, and its trust then."""
    found: dict[str, tuple[int, int]] = {}
    for snapshot in snapshots:
        for tag, (at, trust) in snapshot.of_memories(_LABELS, tags):
            label = int(at), int(trust)
            # The latest counts; of two at once the one that is trusted less.
            found[tag] = max(found.get(tag, label), label, key=lambda its: (its[0], -its[1]))
    return found
