"""Names that parts of events gave them, looked up: when each was given, and the number with it."""

from __future__ import annotations

from collections.abc import Sequence

from ..database.database import marks
from ..store.snapshot import Snapshot

_AT_ONCE = 500
_MOST_OF_ONE = 1_000
_NAMED = (
    "SELECT memory_ref, occurred_us, duration_us, score FROM ("
    "SELECT m.memory_ref, e.occurred_us, e.duration_us, m.score, row_number() OVER "
    "(PARTITION BY m.memory_ref ORDER BY m.seq DESC) place "
    "FROM audit_memory m JOIN audit_event e ON e.seq = m.seq "
    "WHERE m.memory_ref IN ({}) AND m.score IS NOT NULL) AS named WHERE place <= ?"
)


def references(snapshot: Snapshot, names: Sequence[str]) -> dict[str, list[tuple[int, int, float]]]:
    """Return of each of *names* its latest events: begin and end in µs since 1970, and number."""
    by_reference = {snapshot.references.memory(each): each for each in names}
    wanted = list(by_reference)
    found: dict[str, list[tuple[int, int, float]]] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        rows = snapshot.execute(_NAMED.format(marks(len(part))), (*part, _MOST_OF_ONE)).fetchall()
        for ref, begun_us, duration_us, number in rows:
            event = int(begun_us), int(begun_us) + int(duration_us), float(number)
            found.setdefault(by_reference[bytes(ref)], []).append(event)
    return found
