"""The hygiene of customers' memories, from the audit trail and the live stores of a scope."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ...audit.erasure.customer_ids import data_subject
from ...audit.log import AuditLog
from ...audit.queries.memory_model import ended_us
from ...audit.queries.text_extraction import in_words, part_of
from ...audit.record.rows import AuditRow
from ...audit.store.person_lookup import Person
from ...memory.hygiene.findings import (
    Address,
    Ailment,
    Deed,
    HygieneFinding,
    RecallUse,
    StoredText,
    examine,
    recall_use,
)
from ...memory.scope import Mnemoscope
from ...memory.subject_data.records import DataSubject, KnowsDimensions
from ...memory.subject_data.runner import SubjectDataRunner
from ...telemetry.event.kinds import OperationClass
from ...telemetry.text import is_a

_CONCERNED = frozenset({OperationClass.RECALL, OperationClass.REMEMBER, OperationClass.FORGET})


class Examination(NamedTuple):
    """
    What was found in one person's memories.

    Attributes:
        subject: Who it is in the trail. None: of no customer.
        use: What the memories are worth.
        unread: Stores that could not be read, with the reason.
    """

    subject: str | None
    use: RecallUse
    findings: list[HygieneFinding]
    unread: dict[str, str]


def examine_person(
    log: AuditLog,
    person: Person,
    scope: Mnemoscope | None,
    *,
    now_us: int,
    unused_days: int,
    nears: bool,
) -> Examination:
    """
    Return what is wrong with a person's memories; without a *scope* by the trail alone.

    Raises:
        AuditError: The trail cannot be read, or its keys are others.
        ConfigurationError: rapidfuzz is not installed, and *nears*.
    """
    deeds = [*map(_deed, _concerned(log.history(person)))] if person.is_logged else []
    unread: dict[str, str] = {}
    stored = None if scope is None else [*_stored(log, person, scope, deeds, unread)]
    found = examine(deeds, stored, now_us=now_us, unused_days=unused_days, nears=nears)
    if scope is not None:
        found += _wrong_dimensions(scope, unread)
    return Examination(next(iter(person.uids), None), recall_use(deeds, stored), found, unread)


def examine_all(
    log: AuditLog, *, now_us: int, unused_days: int, nears: bool
) -> Iterator[Examination]:
    """Yield what is wrong with each person's memories, by the trail alone, worst first."""
    by_subject: dict[str | None, list[Deed]] = defaultdict(list)
    for row in _concerned(log.rows()):
        by_subject[row.subject_uid].append(_deed(row))
    made = [
        Examination(
            subject,
            recall_use(deeds, None),
            examine(deeds, None, now_us=now_us, unused_days=unused_days, nears=nears),
            {},
        )
        for subject, deeds in by_subject.items()
    ]
    yield from sorted(made, key=lambda each: -len(each.findings))


def _concerned(rows: Iterable[AuditRow]) -> Iterator[AuditRow]:
    # What a store does within another one's call is told by that one.
    return (row for row in rows if row.op_class in _CONCERNED and not row.nested)


def _deed(row: AuditRow) -> Deed:
    memories = tuple((row.store, row.collection, each.memory_id) for each in row.memories)
    said: Any = {} if row.detail is None else row.detail.parts.get("hygiene") or {}
    is_write = row.op_class is OperationClass.REMEMBER
    hashes: list[list[str]] = said.get("wrote" if is_write else "read") or []
    return Deed(
        row.event_id,
        row.op_class,
        row.status,
        row.store,
        None if row.run is None else (row.tenant, row.run),
        ended_us(row),
        memories,
        tuple(tuple(each) for each in hashes),
        tuple(_texts(row)) if is_write and row.content else (),
        row.deletes is not None and row.deletes.is_whole and not row.memories,
    )


def _texts(row: AuditRow) -> Iterator[str]:
    """Yield the text of each memory of a write, or what was to be written where it names none."""
    content: Any = json.loads(row.content or "null")
    if not row.memories:
        messages: Any = content.get("messages") if is_a(content, dict) else None
        yield from map(in_words, messages if is_a(messages, list) else [content])
        return
    count = len(row.memories)
    for place, each in enumerate(row.memories):
        part = part_of(content, each.memory_id, place, count)
        # Of a conversation that several facts were made of nobody can tell which is which.
        yield "" if part is content and count > 1 else in_words(part)


def _stored(
    log: AuditLog,
    person: Person,
    scope: Mnemoscope,
    deeds: Sequence[Deed],
    unread: dict[str, str],
) -> Iterator[StoredText]:
    """Yield what the stores of *scope* have, under the addresses that the trail has for it."""
    known: dict[tuple[str, str], list[Address]] = defaultdict(list)
    for deed in deeds:
        for each in deed.memories:
            if each not in known[each[0], each[2]]:
                known[each[0], each[2]].append(each)
    first, *others = person.identities
    with scope.customer_data(first.customer, tenant=first.tenant or None) as data:
        data.settle()
        subject: DataSubject = data_subject(log, first.customer, first.tenant, others=others)
        for store in data.stores(subject):
            if store.unavailable is not None:
                unread[store.name] = store.unavailable
                continue
            try:
                for record in store.records():
                    if record.kind in {"memory", "point", "item"} and not record.is_shared:
                        address = store.store, record.collection, record.id
                        same = known[address[0], address[2]]
                        if len(same) == 1 and address not in same:
                            address = same[0]
                        yield StoredText(
                            address, in_words(record.content), _time_us(record.created)
                        )
            except Exception as exc:  # noqa: BLE001 - whatever a store raises, it is named
                unread[store.name] = type(exc).__name__


def _wrong_dimensions(scope: Mnemoscope, unread: dict[str, str]) -> Iterator[HygieneFinding]:
    with SubjectDataRunner() as runner:
        for name, provider in scope.subject_data.named().items():
            if not isinstance(provider, KnowsDimensions):
                continue
            try:
                found = runner.run(provider.dimensions())
            except Exception as exc:  # noqa: BLE001 - whatever a store raises, it is named
                unread[name] = type(exc).__name__
                continue
            if found is not None and found.embedder != found.stored:
                sizes = f"{found.embedder:,} of the embedder, {found.stored:,} stored"
                yield HygieneFinding(
                    Ailment.WRONG_DIMENSION, (), note=f"{name}, {found.collection}: {sizes}"
                )


def _time_us(text: str | None) -> int | None:
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    zoned = found if found.tzinfo else found.replace(tzinfo=UTC)
    return round(zoned.timestamp() * 1_000_000)
