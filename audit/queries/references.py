"""Names that parts of events gave them, looked up: when each was given, and the number with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..store.snapshot import Snapshot

_MOST_OF_ONE = 1_000
_NAMED = (
    "SELECT memory_ref, occurred_us, duration_us, score FROM ("
    "SELECT m.memory_ref, e.occurred_us, e.duration_us, m.score, row_number() OVER "
    "(PARTITION BY m.memory_ref ORDER BY m.seq DESC) place "
    "FROM audit_memory m JOIN audit_event e ON e.seq = m.seq "
    "WHERE m.memory_ref IN ({}) AND m.score IS NOT NULL) AS named WHERE place <= ?"
)


def references(
    snapshots: Iterable[Snapshot], names: Sequence[str]
) -> dict[str, list[tuple[int, int, float]]]:
    """Return of each of *names* its latest events: begin and end in µs since 1970, and number."""
    moments, found = [*snapshots], dict[str, list[tuple[int, int, float]]]()
    for snapshot in moments:
        for name, (begun_us, duration_us, number) in snapshot.of_memories(
            _NAMED, names, _MOST_OF_ONE
        ):
            event = int(begun_us), int(begun_us) + int(duration_us), float(number)
            found.setdefault(name, []).append(event)
    if len(moments) > 1:
        for each in found.values():
            each.sort(reverse=True)
    return found
