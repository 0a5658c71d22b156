"""
Operations that name no customer, on memories of one: told over all shards.

A tenant that moved has memories in one shard that are changed by id alone in another. By what
each log calls a memory no two can be joined, so it is looked for by the ids themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...telemetry.event.event import OperationClass
from ..database.database import among, blob
from ..queries.reading import BY_SUBJECT
from ..record.rows import row_from
from ..store.snapshot import Snapshot

_NAMED = """
    SELECT d.seq, d.place_ref, m.memory_ref, d.subject_uid, s.kind FROM audit_memory m
    JOIN audit_detail d ON d.seq = m.seq JOIN audit_subject s ON s.subject_uid = d.subject_uid
    WHERE m.memory_ref IN ({})
"""
_ALIASES = "SELECT alias FROM audit_subject_alias WHERE subject_uid IN ({})"
_WHO = "SELECT subject_uid FROM audit_subject_alias WHERE id_type <> 'erasing' AND alias IN ({})"

Memory = tuple[str, str]
"""Its place, as events have it, and its id."""


def unnamed_seqs(
    snapshot: Snapshot,
    others: Sequence[Snapshot],
    uids: Sequence[str],
    nobodies: Sequence[str],
    *,
    written: bool,
) -> list[int]:
    """Return what `seqs_by_id_alone` does of *snapshot*, by what *others* have as well."""
    moments = (snapshot, *others)
    aliases = {alias for each in moments for (alias,) in among(each, _ALIASES, uids)}
    own = {
        each: each.family([*{*uids, *(uid for (uid,) in among(each, _WHO, [*aliases]))}])
        for each in moments
    }
    mine = {memory for each in moments for memory in _memories(each, own[each], written=written)}
    shared, found = set[Memory](), list[tuple[Memory, int]]()
    for each in moments:
        refer = each.references
        known = {(refer.place(place), refer.memory(its)): (place, its) for place, its in mine}
        rows = among(each, _NAMED, [ref for _place, ref in known])
        for seq, place_ref, memory_ref, uid, kind in rows:
            memory = known.get((blob(place_ref), blob(memory_ref)))
            if memory is not None and kind == "customer" and uid not in own[each]:
                shared.add(memory)
            elif memory is not None and each is snapshot and uid in nobodies:
                found.append((memory, seq))
    return sorted({seq for memory, seq in found if memory not in shared})


def _memories(snapshot: Snapshot, uids: Sequence[str], *, written: bool) -> Iterator[Memory]:
    for uid in uids:
        for row in map(row_from, snapshot.found(BY_SUBJECT, (uid,))):
            if row.op_class is OperationClass.REMEMBER or not written:
                place = f"{row.store}\n{row.collection or ''}"
                yield from ((place, each.memory_id) for each in row.memories)
