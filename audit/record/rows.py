"""One event of the log as it is read, with its detail where that was not erased."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from ...telemetry.event.event import Deletes, Journalled, OperationClass, Status
from ...telemetry.event.usage import Usage
from ...telemetry.text import json_text

OPERATION = "operation"
LOG = "log"
"""The kinds of events: one about an operation, or one about the log itself."""


class MemoryRef(NamedTuple):
    """A memory that an event read or wrote: its place among the results, from 1, and its score."""

    memory_id: str
    rank: int
    score: float | None


@dataclass(frozen=True, slots=True)
class Detail:
    """
    The erasable part of an event.

    Attributes:
        plaintext: To the byte, since the header commits to it.
        tenant: The organisation the call was made for.
        memories: Read or written, in rank order.
        content: The content of the call, redacted, as JSON text. None where none was kept.
        parts: What features of other packages said about it, by the names of their parts.
    """

    plaintext: bytes = field(repr=False)
    tenant: str | None
    run: str | None
    collection: str | None
    memories: tuple[MemoryRef, ...]
    content: str | None = field(repr=False)
    parts: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """
    One operation, as it was recorded. The fields of `Event`, in the units of the table.

    Attributes:
        seq: Order of recording, in this log: the index of its leaf.
        event_id: Unique over all writers.
        occurred_us: Start, microseconds since 1970 UTC.
        recorded_us: When it reached the database, likewise.
        content: The content of the call, redacted, as JSON text. None where none was kept.
        leaf: Its hash.
        detail: The erasable part. None: it was erased, or there was none.
        salt: With `detail`, what the header's commitment is checked with.
        subject_uid: The customer of the detail; the tenant's nobody where the call named none.
    """

    seq: int
    event_id: str
    occurred_us: int
    recorded_us: int
    operation: str
    op_class: OperationClass
    store: str
    method: str
    deletes: Deletes | None
    collection: str | None
    status: Status
    neutral: bool
    late: bool
    journal: Journalled
    nested: bool
    error: str | None
    duration_us: int
    waited_us: int
    hits: int | None
    foreign_hits: int
    top_score: float | None
    size_bytes: int | None
    redactions: Mapping[str, int]
    tenant: str | None
    agent: str | None
    feature: str | None
    run: str | None
    purpose: str | None
    trace_id: str
    span_id: str
    memories: tuple[MemoryRef, ...]
    usage: Usage | None
    content: str | None
    header: bytes = field(repr=False)
    leaf: bytes = field(repr=False)
    detail: Detail | None = field(repr=False)
    salt: bytes | None = field(repr=False)
    subject_uid: str | None


class StoredEvent(NamedTuple):
    """One event as the tables have it; its detail decrypted, not parsed."""

    seq: int
    header: bytes
    leaf: bytes
    subject_uid: str | None
    salt: bytes | None
    plaintext: bytes | None


def detail_from(plaintext: bytes) -> Detail:
    """Return the detail that `sealing.detail_text` wrote."""
    known = orjson.loads(plaintext)
    content = known["content"]
    return Detail(
        plaintext,
        known["tenant"],
        known["run"],
        known["collection"],
        tuple(MemoryRef(memory_id, rank, score) for rank, memory_id, score in known["memories"]),
        None if content is None else json_text(content),
        known.get("parts", {}),
    )


_NO_DETAIL = Detail(b"", None, None, None, (), None)


def row_from(found: StoredEvent) -> AuditRow:
    """Return the event that was sealed so."""
    known = orjson.loads(found.header)
    opened = None if found.plaintext is None else detail_from(found.plaintext)
    detail = opened or _NO_DETAIL
    return AuditRow(
        seq=found.seq,
        occurred_us=known["occurred_at"],
        recorded_us=known["recorded_at"],
        op_class=OperationClass(known["op_class"]),
        deletes=deletes_of(known, known["op_class"]),
        status=Status(known["status"]),
        journal=Journalled(known["journal"]),
        top_score=_number(known["top_score"]),
        usage=usage_from(known["usage"]),
        collection=detail.collection,
        tenant=detail.tenant,
        run=detail.run,
        memories=detail.memories,
        content=detail.content,
        header=found.header,
        leaf=found.leaf,
        detail=opened,
        salt=found.salt,
        subject_uid=found.subject_uid,
        **{name: known[name] for name in _AS_SEALED},
    )


_AS_SEALED = (
    *("event_id", "operation", "store", "method", "neutral", "late", "nested", "error"),
    *("duration_us", "waited_us", "hits", "foreign_hits", "size_bytes", "redactions", "agent"),
    *("feature", "purpose", "trace_id", "span_id"),
)


def deletes_of(known: Mapping[str, Any], op_class: str) -> Deletes | None:
    """
    Return how much an operation deleted, as its header or its line in a bundle says.

    A log that was written before headers said so has deletions without it. Dropping a store takes
    everything in it; of any other deletion nothing is known but the memories that it lists.
    """
    if op_class != OperationClass.FORGET:
        return None
    if "deletes" in known:
        return Deletes(known["deletes"])
    is_store = known["operation"] == _DELETE_STORE
    return Deletes.EVERYTHING if is_store else Deletes.IDS


def is_nobodys(header: bytes) -> bool:
    """Return whether what an event was about is nobody's personal data, as the user said then."""
    # A search first: most headers do not have it, and reading each would cost ten times that.
    return b'"nobodys"' in header and orjson.loads(header).get("nobodys") is True


_DELETE_STORE = "delete_memory_store"
"""OpenTelemetry's name of the operation that drops a whole store."""


def usage_from(sealed: Mapping[str, Any] | None) -> Usage | None:
    """Return what a header says of a model call's tokens and cost."""
    if sealed is None:
        return None
    values: dict[str, Any] = dict(sealed)
    values["namespace"] = tuple(sealed["namespace"])
    for name in ("time_to_first_token_s", "cost_usd"):
        values[name] = _number(sealed[name])
    return Usage(**values)


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)
