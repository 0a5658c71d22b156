"""Between events and rows: what is written, and what is read back."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..telemetry.event import Event, Journalled, OperationClass, Status
from ..telemetry.text import clean_text, json_text
from ..telemetry.usage import Usage

Value = str | int | float | None

EVENT_COLUMNS = (
    *("writer_id", "writer_seq", "occurred_us", "recorded_us", "operation", "op_class", "store"),
    *("method", "collection", "status", "neutral", "late", "journal", "nested", "error"),
    *("duration_us", "waited_us", "hits", "foreign_hits", "top_score", "size_bytes", "redactions"),
    *("subject", "tenant", "agent", "feature", "run", "purpose", "trace_id", "span_id", "content"),
)
USAGE_COLUMNS = (
    *("model", "provider", "node", "namespace", "input_tokens", "output_tokens", "cached_tokens"),
    *("cache_write_tokens", "reasoning_tokens", "time_to_first_token_s", "cost_usd"),
)
_LARGEST = 2**63 - 1


class Encoded(NamedTuple):
    """One event as values of `EVENT_COLUMNS`, its memories, and values of `USAGE_COLUMNS`."""

    event: tuple[Value, ...]
    memories: tuple[tuple[int, str, float | None], ...]
    usage: tuple[Value, ...] | None


class MemoryRef(NamedTuple):
    """A memory that an event read or wrote: its place among the results, from 1, and its score."""

    memory_id: str
    rank: int
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """
    One operation, as it was recorded. The fields of `Event`, in the units of the table.

    Attributes:
        seq: Order of recording, in this database.
        event_id: Unique over all writers.
        occurred_us: Start, microseconds since 1970 UTC.
        recorded_us: When it reached the database, likewise.
        content: What was asked or written, redacted, as JSON text. None where none was kept.
    """

    seq: int
    event_id: str
    occurred_us: int
    recorded_us: int
    operation: str
    op_class: OperationClass
    store: str
    method: str
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


def encode(event: Event, recorded_us: int) -> Encoded:
    """Return the values that are stored of *event*."""
    return Encoded(_event_values(event, recorded_us), _memories(event), _usage_values(event.usage))


def _event_values(event: Event, recorded_us: int) -> tuple[Value, ...]:
    return (
        event.writer_id,
        event.writer_seq,
        event.started_ns // 1_000,
        recorded_us,
        event.operation,
        event.op_class.value,
        event.store,
        event.method,
        event.collection,
        event.status.value,
        event.neutral,
        event.late,
        event.journal.value,
        event.nested,
        event.error,
        _micros(event.duration_s),
        _micros(event.waited_s),
        event.hits,
        event.foreign_hits,
        _finite(event.top_score),
        event.size_bytes,
        json_text(dict(event.redactions)) if event.redactions else None,
        event.subject.hashed("audit") if event.subject else None,
        event.tenant,
        event.agent,
        event.feature,
        event.run,
        event.purpose,
        event.trace.trace_hex,
        event.trace.span_hex,
        json_text(event.content.value) if event.content else None,
    )


def _memories(event: Event) -> tuple[tuple[int, str, float | None], ...]:
    scores = event.scores
    return tuple(
        (place + 1, memory_id, _finite(scores[place]) if place < len(scores) else None)
        for place, memory_id in enumerate(event.memory_ids)
    )


def _usage_values(usage: Usage | None) -> tuple[Value, ...] | None:
    if usage is None:
        return None
    return (
        usage.model,
        usage.provider,
        usage.node,
        json_text(list(usage.namespace)),
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
        _finite(usage.time_to_first_token_s),
        _finite(usage.cost_usd),
    )


def _micros(seconds: float) -> int:
    return round(seconds * 1e6) if math.isfinite(seconds) and seconds > 0 else 0


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def storable(values: Iterable[Any]) -> tuple[Value, ...]:
    """Return *values* with each that SQLite refuses replaced: an odd field costs only itself."""
    return tuple(_storable(value) for value in values)


def _storable(value: Any) -> Value:
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, float):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST else _LARGEST
    return f"<{type(value).__name__}>"


def decode(
    seq: int,
    event: Mapping[str, Any],
    memories: tuple[MemoryRef, ...],
    usage: Mapping[str, Any] | None,
) -> AuditRow:
    """Return the row that was stored as these values."""
    return AuditRow(
        seq=seq,
        event_id=f"{event['writer_id']}-{event['writer_seq']}",
        op_class=OperationClass(event["op_class"]),
        status=Status(event["status"]),
        neutral=bool(event["neutral"]),
        late=bool(event["late"]),
        journal=Journalled(event["journal"]),
        nested=bool(event["nested"]),
        redactions=json.loads(event["redactions"]) if event["redactions"] else {},
        memories=memories,
        usage=_usage(usage) if usage else None,
        **{name: event[name] for name in _AS_STORED},
    )


_CONVERTED = {"writer_id", "writer_seq", "op_class", "status", "neutral", "late", "journal"}
_AS_STORED = tuple(set(EVENT_COLUMNS) - _CONVERTED - {"nested", "redactions", "subject"})


def _usage(stored: Mapping[str, Any]) -> Usage:
    values = dict(stored)
    values["namespace"] = tuple(json.loads(stored["namespace"] or "[]"))
    return Usage(**values)
