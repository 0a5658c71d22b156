"""
The provenance of an agent's answer: the memories that its run recalled, and who wrote them.

A run is what the application called one: a thread, a session, a request. What it recalled is in its
events, with rank and score; who wrote a memory, when, from which message, and what has become of it
since, is in the events of whoever did.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...telemetry.event.event import OperationClass
from ...telemetry.text import recorded_name
from ..record.rows import AuditRow, MemoryRef
from ..store.person_lookup import Person, person_of
from ..store.snapshot import SnapshotSource
from . import reading
from .memory_model import ended_us

_OWN_ID = re.compile(r"<SUBJECT_ID(?:_[0-9a-f]+)?>")
"""What redaction writes in place of an id that the application itself gave."""

_CHANGING = frozenset({OperationClass.REMEMBER, OperationClass.FORGET})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMemory:
    """
    One memory that a run recalled.

    Attributes:
        memory_id: As its store knows it.
        rank: Its place among the results, from 1.
        score: In the store's own measure, where it ranks.
        origin: What wrote it first. None: the trail does not say: it was written before there was
            one, past mnemoscope, or the person was erased.
        before: Other changes until it was seen, oldest first.
    """

    memory_id: str
    rank: int
    score: float | None
    origin: AuditRow | None
    before: tuple[AuditRow, ...]
    since: tuple[AuditRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """
    One recall of a run.

    Attributes:
        seen: The memories that it found, in rank order.
    """

    row: AuditRow
    seen: tuple[RecalledMemory, ...]


def rows_of(
    log: SnapshotSource,
    run: str,
    customer: str | Person | None = None,
    tenant: str | None = None,
) -> Iterator[AuditRow]:
    """
    Yield the operations of a run, in order.

    A run whose name holds its customer's id is recorded without it: then *customer* helps.

    Raises:
        UnknownSubjectError: Nobody is known by that id.
        AmbiguousSubjectError: Several people are.
        AuditError: The log cannot be read, or was written with other keys.
    """
    with log.reading() as snapshot:
        if customer is None:
            yield from reading.rows(snapshot, run=run)
            return
        person = person_of(snapshot, customer, tenant)
        names = [each.customer for each in person.identities]
        # Given as the application has it, or copied from what a command has shown.
        wanted = {run, recorded_name(run)}
        for row in reading.history_of(snapshot, person.uids, person.tenants):
            if row.run and wanted & {row.run, *(verbatim(row.run, name) for name in names)}:
                yield row


def verbatim(run: str, customer: str) -> str:
    """Return a run's name with the customer's id where it was replaced: as the stores know it."""
    return _OWN_ID.sub(lambda _match: customer, run)


def recalls(log: SnapshotSource, rows: Iterable[AuditRow]) -> Iterator[Recall]:
    """
    Yield the recalls in *rows*.

    Raises:
        AuditError: The log cannot be read.
    """
    for row in rows:
        # A nested one is a part of the one around it, with the same memories.
        if row.op_class is OperationClass.RECALL and not row.nested:
            yield Recall(row=row, seen=tuple(_seen(log, row, each) for each in row.memories))


def _seen(log: SnapshotSource, recall: AuditRow, memory: MemoryRef) -> RecalledMemory:
    changes = changes_of(log, memory.memory_id, store=recall.store, collection=recall.collection)
    then = recall.occurred_us
    # By its end: a write that was still under way may not have been seen.
    before = tuple(each for each in changes if ended_us(each) <= then)
    written = [each for each in before if each.op_class is OperationClass.REMEMBER]
    origin = written[0] if written else None
    return RecalledMemory(
        memory_id=memory.memory_id,
        rank=memory.rank,
        score=memory.score,
        origin=origin,
        before=tuple(each for each in before if each is not origin),
        since=tuple(each for each in changes if ended_us(each) > then),
    )


def changes_of(
    log: SnapshotSource, memory_id: str, *, store: str, collection: str | None
) -> list[AuditRow]:
    """Return every change of a memory, oldest first."""
    with log.reading() as snapshot:
        found = [
            row
            for row in reading.rows(snapshot, memory_id=memory_id)
            if row.op_class in _CHANGING and row.status.is_normal and row.store == store
        ]
    same = [row for row in found if row.collection == collection]
    return sorted(same, key=lambda row: (ended_us(row), row.seq))
