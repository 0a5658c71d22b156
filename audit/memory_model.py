"""
What an agent remembered about a customer at a moment, rebuilt from what was written and deleted.

A write counts from when it ended, and if the store said that it had it. What is left after an
erasure is what came after it: the trail has nothing else any more. A deletion that names no memory
takes all of its store, where it is that kind of deletion; one by a filter may or may not have taken
a memory, which is then in doubt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ..telemetry.event import OperationClass
from ..telemetry.text import json_text
from .rows import AuditRow, row_from
from .sentinels import is_of
from .snapshot import SELECT

if TYPE_CHECKING:
    from .log import AuditLog
    from .snapshot import Snapshot

Key: TypeAlias = tuple[str, str | None, str]
"""Store, collection, id."""

EVERYTHING = ("delete_all", "reset", "delete_users", "delete_collection", "recreate_collection")
"""Methods that delete all there is, of whomever they are about."""

_PARTS = ("points", "messages", "memories")
"""Where a write of many has a part for each."""

_WHOLESALE = (
    f"{SELECT} WHERE e.kind = 'operation' AND e.method IN "
    "('reset', 'delete_collection', 'recreate_collection') ORDER BY e.seq"
)
"""Finds what deleted everybody's memories, in nobody's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """
    One memory, as the trail knows it at a moment. Times in microseconds since 1970 UTC.

    Attributes:
        content: What was last written of it, redacted, as JSON text. None where none was kept.
        written_us: When it came to be.
        changed_us: When it was last written.
        run: In which run that was.
        agent: By whom.
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
    """The memories of one customer, after each of the operations that it is shown, in order."""

    def __init__(self) -> None:
        self._memories: dict[Key, Memory] = {}

    def apply(self, row: AuditRow) -> None:
        """Have what *row* did be done."""
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
            content = _content_of(row.content, each.memory_id, place, len(row.memories))
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
            if row.method in EVERYTHING:
                del self._memories[key]
            else:
                self._memories[key] = replace(self._memories[key], in_doubt=True)

    def memories(self) -> list[Memory]:
        """Return them, oldest first."""
        return sorted(self._memories.values(), key=lambda each: each.written_us)


def _is_in(key: Key, row: AuditRow) -> bool:
    store, collection, _memory_id = key
    return store == row.store and row.collection in {None, collection}


def remembered_at(log: AuditLog, customer: str, tenant: str | None, moment_us: int) -> list[Memory]:
    """
    Return what was remembered about a customer at a moment, as far as the log knows.

    Raises:
        AuditError: It cannot be read, or was written with other keys.
    """
    with log.reading() as snapshot:
        wholesale = list(_wholesale(snapshot))
    return rebuilt([*log.history(customer, tenant), *wholesale], moment_us)


def _wholesale(snapshot: Snapshot) -> Iterator[AuditRow]:
    found = map(row_from, snapshot.found(_WHOLESALE))
    return (row for row in found if not row.memories)


def rebuilt(rows: Iterable[AuditRow], moment_us: int) -> list[Memory]:
    """Return the memories that are there after all of *rows* that had ended by a moment."""
    done = {row.seq: row for row in rows if _changes(row) and ended_us(row) <= moment_us}
    model = MemoryModel()
    for row in sorted(done.values(), key=lambda each: (ended_us(each), each.seq)):
        model.apply(row)
    return model.memories()


def _changes(row: AuditRow) -> bool:
    # What mem0 does in the Qdrant below it is told of mem0.
    concerned = row.op_class in {OperationClass.REMEMBER, OperationClass.FORGET}
    return concerned and row.status.is_normal and not row.neutral and not row.nested


def ended_us(row: AuditRow) -> int:
    """Return when an operation ended."""
    return row.occurred_us + row.duration_us


def _content_of(content: str | None, memory_id: str, place: int, of: int) -> str | None:
    """Return what of a write is about one of the memories that it wrote."""
    if content is None or of == 1:
        return content
    known = json.loads(content)
    lists = [known.get(name) for name in _PARTS] if is_of(known, dict) else []
    for each in lists:
        named = [part for part in each if _id_of(part) == memory_id] if is_of(each, list) else []
        if named or (is_of(each, list) and len(each) == of):
            return json_text(named[0] if named else each[place])
    return content


def _id_of(part: Any) -> str | None:
    found = part.get("id") if is_of(part, dict) else None
    return None if found is None else str(found)
