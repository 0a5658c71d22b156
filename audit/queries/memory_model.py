"""
The memories about a customer at a moment, rebuilt from writes and deletions.

A memory is about a customer if a write of it names them. What a recall alone names, a page of help
for example, was used to answer them, and is listed apart: that it is about them is not known.

A write counts from when it ended, and if the store said that it had it. What is left after an
erasure is what came after it: the trail has nothing else any more. A deletion that names no memory
takes all of its store, where it is that kind of deletion; one by a filter may or may not have taken
a memory, which is then in doubt.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import orjson

from ...telemetry.event.event import Deletes, OperationClass
from ...telemetry.text import json_text
from ..record.rows import AuditRow, deletes_of, row_from
from ..store.person_lookup import Person, person_of
from ..store.snapshot import Snapshot, SnapshotSource, found_by_seqs
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
        in_doubt: A deletion that named no memories may have taken it.
        is_theirs: A write of it names the customer.
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
    is_theirs: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedMemory:
    """
    A memory that was recalled for a customer, and that no write names them for.

    Attributes:
        content: What was last written there by nobody in particular, redacted, as JSON text. None:
            the trail does not have it.
        times: How often it was recalled for them.
        last_us: When last, microseconds since 1970 UTC.
    """

    store: str
    collection: str | None
    memory_id: str
    content: str | None
    times: int
    last_us: int


class MemoriesAt(NamedTuple):
    """
    What the trail knows of a customer's memories at a moment.

    Attributes:
        used: What else was recalled for them until then. It may be gone since.
    """

    remembered: list[Memory]
    used: list[UsedMemory]


class MemoryModel:
    """
    The memories of one customer after the operations that were applied, in order.

    Args:
        subjects: The subjects of the log that the customer is.
    """

    def __init__(self, subjects: Collection[str]) -> None:
        self._subjects = subjects
        self._memories: dict[Key, Memory] = {}
        self._about: dict[tuple[str, str], set[str]] = {}
        self._recalled: dict[Key, list[int]] = {}

    def apply(self, row: AuditRow) -> None:
        """Apply *row*."""
        if row.op_class is OperationClass.RECALL:
            for each in row.memories if row.subject_uid in self._subjects else ():
                key = (row.store, row.collection, each.memory_id)
                self._recalled.setdefault(key, []).append(ended_us(row))
        elif row.op_class is OperationClass.REMEMBER:
            self._remember(row)
        elif row.memories:
            for each in row.memories:
                # None: it was written before the trail began.
                self._memories.pop((row.store, row.collection, each.memory_id), None)
        else:
            self._forget(row)

    def _remember(self, row: AuditRow) -> None:
        for place, each in enumerate(row.memories):
            key = (row.store, row.collection, each.memory_id)
            before = self._memories.get(key)
            content = _content_of(row, place)
            names_them = row.subject_uid in self._subjects
            if names_them:
                places = self._about.setdefault((row.store, each.memory_id), set())
                places.add(row.collection or "")
            self._memories[key] = Memory(
                store=row.store,
                collection=row.collection,
                memory_id=each.memory_id,
                # An update may change metadata alone, and then says nothing of the text.
                content=content or (before.content if before else None),
                # As old as its first version, however often it was written since.
                written_us=before.written_us if before else ended_us(row),
                changed_us=ended_us(row),
                run=row.run,
                agent=row.agent,
                is_theirs=names_them or (before is not None and before.is_theirs),
            )

    def _forget(self, row: AuditRow) -> None:
        concerned = [key for key in self._memories if _is_in(key, row)]
        for key in concerned:
            if row.deletes is not None and row.deletes.is_whole:
                del self._memories[key]
            else:
                # By which filter is in the detail, if at all; whether it matched only the store
                # knew.
                self._memories[key] = replace(self._memories[key], in_doubt=True)

    def memories(self) -> MemoriesAt:
        """Return the memories: own ones by age, used ones by their last use."""
        theirs = (each for each in self._memories.values() if each.is_theirs)
        used = (self._used(key) for key in self._recalled if not self._was_about_them(key))
        return MemoriesAt(
            sorted(theirs, key=lambda each: each.written_us),
            sorted(used, key=lambda each: each.last_us),
        )

    def _used(self, key: Key) -> UsedMemory:
        store, collection, memory_id = key
        moments, known = self._recalled[key], self._memories.get(key)
        return UsedMemory(
            store=store,
            collection=collection,
            memory_id=memory_id,
            content=known.content if known else None,
            times=len(moments),
            last_us=moments[-1],
        )

    def _was_about_them(self, key: Key) -> bool:
        store, collection, memory_id = key
        # A recall may name the collection above that of what it found.
        return any(
            not collection or not place or f"{place}.".startswith(f"{collection}.")
            for place in self._about.get((store, memory_id), ())
        )


def _is_in(key: Key, row: AuditRow) -> bool:
    store, collection, _memory_id = key
    return store == row.store and row.collection in {None, collection}


def remembered_at(
    log: SnapshotSource, customer: str | Person, tenant: str | None, moment_us: int
) -> MemoriesAt:
    """
    Return what was remembered about a customer at a moment, as far as the log knows.

    What was recalled for them until then is beside it, where no write of it names them.

    Raises:
        UnknownSubjectError: Nobody is known by that id.
        AmbiguousSubjectError: Several people are.
        AuditError: It cannot be read, or was written with other keys.
    """
    with log.reading() as snapshot:
        person = person_of(snapshot, customer, tenant)
        # Of what was used to answer them the words are wanted, whosever it is.
        theirs = history_of(snapshot, person.uids, person.tenants, public=True)
        rows = [*theirs, *_wholesale(snapshot)]
        subjects = frozenset(snapshot.family(person.uids))
    return _rebuilt(rows, moment_us, subjects)


def _wholesale(snapshot: Snapshot) -> Iterator[AuditRow]:
    """Yield the deletions of everything, which name no customer."""
    seqs = [
        seq
        for seq, header in snapshot.stream(_DELETIONS)
        if deletes_of(orjson.loads(header), OperationClass.FORGET) is Deletes.EVERYTHING
    ]
    found = map(row_from, found_by_seqs(snapshot, seqs))
    return (row for row in found if not row.memories)


def _rebuilt(rows: Iterable[AuditRow], moment_us: int, subjects: Collection[str]) -> MemoriesAt:
    """Return the memories that are there after all of *rows* that had ended by a moment."""
    # By number: a deletion of everything is in the customer's own history, too.
    done = {row.seq: row for row in rows if _counts(row) and ended_us(row) <= moment_us}
    model = MemoryModel(subjects)
    # By their ends: of two writes that overlapped the store kept the later one.
    for row in sorted(done.values(), key=lambda each: (ended_us(each), each.seq)):
        model.apply(row)
    return model.memories()


_CONCERNED = frozenset({OperationClass.RECALL, OperationClass.REMEMBER, OperationClass.FORGET})


def _counts(row: AuditRow) -> bool:
    # A store below another one is called by that one, whose event counts.
    return (
        row.op_class in _CONCERNED and row.status.is_normal and not row.neutral and not row.nested
    )


def ended_us(row: AuditRow) -> int:
    """Return when an operation ended."""
    return row.occurred_us + row.duration_us


def _content_of(row: AuditRow, place: int) -> str | None:
    """Return the part of a write's content for the memory at *place* in the write."""
    # Of one memory all of the content is.
    if row.content is None or len(row.memories) == 1:
        return row.content
    memory_id = row.memories[place].memory_id
    return json_text(part_of(json.loads(row.content), memory_id, place, len(row.memories)))
