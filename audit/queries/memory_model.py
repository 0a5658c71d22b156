"""
The memories about a customer at a moment, rebuilt from writes and deletions.

A write counts from when it ended, and if the store said that it had it. What is left after an
erasure is what came after it: the trail has nothing else any more. A deletion that names no memory
takes all of its store, where it is that kind of deletion; one by a filter may or may not have taken
a memory, which is then in doubt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import orjson

from ...telemetry.event.event import Deletes, OperationClass
from ...telemetry.event.text import json_text
from ..record.rows import AuditRow, deletes_of, row_from
from ..store.snapshot import Snapshot, SnapshotSource, found_by_seqs
from ..store.whose import Person, person_of
from .reading import history_of
from .text_extraction import part_of

Key: TypeAlias = tuple[str, str | None, str]
"""Store, collection, id."""

_DELETIONS = """
    SELECT seq, header FROM audit_event
    WHERE kind = 'operation' AND op_class = 'forget' ORDER BY seq
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """
    One memory, as the trail knows it at a moment. Times in microseconds since 1970 UTC.

    Attributes:
        content: The latest content, redacted, as JSON text. None where none was kept.
        written_us: When it was first written.
        changed_us: When it was last written.
        run: The run that did.
        agent: The agent that did.
        in_doubt: A deletion that named no memories may have taken it.
    """

    store: str
    collection: str | None
    memory_id: str
    content: str | None
    written_us: int
    changed_us: int
    run: str | None = None
    agent: str | None = None
    in_doubt: bool = False


class MemoryModel:
    """The memories of one customer after the operations that were applied, in order."""

    def __init__(self) -> None:
        self._memories: dict[Key, Memory] = {}

    def apply(self, row: AuditRow) -> None:
        """Apply *row*."""
        if row.op_class is OperationClass.REMEMBER:
            self._remember(row)
        elif row.memories:
            for each in row.memories:
                self._memories.pop((row.store, row.collection, each.memory_id), None)
        else:
            self._forget(row)

    def _remember(self, row: AuditRow) -> None:
        for place, each in enumerate(row.memories):
            key = (row.store, row.collection, each.memory_id)
            before = self._memories.get(key)
            content = _content_of(row, place)
            self._memories[key] = Memory(
                store=row.store,
                collection=row.collection,
                memory_id=each.memory_id,
                content=content or (before.content if before else None),
                written_us=before.written_us if before else ended_us(row),
                changed_us=ended_us(row),
                run=row.run,
                agent=row.agent,
            )

    def _forget(self, row: AuditRow) -> None:
        concerned = [key for key in self._memories if _is_in(key, row)]
        for key in concerned:
            if row.deletes is not None and row.deletes.is_whole:
                del self._memories[key]
            else:
                self._memories[key] = replace(self._memories[key], in_doubt=True)

    def memories(self) -> list[Memory]:
        """Return them, oldest first."""
        return sorted(self._memories.values(), key=lambda each: each.written_us)


def _is_in(key: Key, row: AuditRow) -> bool:
    store, collection, _memory_id = key
    return store == row.store and row.collection in {None, collection}


def remembered_at(
    log: SnapshotSource, customer: str | Person, tenant: str | None, moment_us: int
) -> list[Memory]:
    """
    Return what was remembered about a customer at a moment, as far as the log knows.

    Raises:
        UnknownSubjectError: Nobody is known by that id.
        AmbiguousSubjectError: Several people are.
        AuditError: It cannot be read, or was written with other keys.
    """
    with log.reading() as snapshot:
        person = person_of(snapshot, customer, tenant)
        theirs = history_of(snapshot, person.uids, person.tenants)
        rows = [*theirs, *_wholesale(snapshot)]
    return rebuilt(rows, moment_us)


def _wholesale(snapshot: Snapshot) -> Iterator[AuditRow]:
    """Yield the deletions of everything, which name no customer."""
    seqs = [
        seq
        for seq, header in snapshot.stream(_DELETIONS)
        if deletes_of(orjson.loads(header), OperationClass.FORGET) is Deletes.EVERYTHING
    ]
    found = map(row_from, found_by_seqs(snapshot, seqs))
    return (row for row in found if not row.memories)


def rebuilt(rows: Iterable[AuditRow], moment_us: int) -> list[Memory]:
    """Return the memories that are there after all of *rows* that had ended by a moment."""
    done = {row.seq: row for row in rows if _changes(row) and ended_us(row) <= moment_us}
    model = MemoryModel()
    for row in sorted(done.values(), key=lambda each: (ended_us(each), each.seq)):
        model.apply(row)
    return model.memories()


def _changes(row: AuditRow) -> bool:
    # A store below another one is called by that one, whose event counts.
    concerned = row.op_class in {OperationClass.REMEMBER, OperationClass.FORGET}
    return concerned and row.status.is_normal and not row.neutral and not row.nested


def ended_us(row: AuditRow) -> int:
    """Return when an operation ended."""
    return row.occurred_us + row.duration_us


def _content_of(row: AuditRow, place: int) -> str | None:
    """Return what a write says of the memory at *place* among those that it wrote."""
    if row.content is None or len(row.memories) == 1:
        return row.content
    memory_id = row.memories[place].memory_id
    return json_text(part_of(json.loads(row.content), memory_id, place, len(row.memories)))
