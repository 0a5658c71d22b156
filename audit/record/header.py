"""
The sealed part of an event: canonical JSON (RFC 8785).

The position of an event in the log is not known until it is stored, so a header is a dict that its
position completes; `sealed` writes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, cast

import msgspec
import orjson

from ...telemetry.event.event import Event
from ...telemetry.event.part import EventPart
from ...telemetry.event.parts import OWN
from ...telemetry.event.usage import Usage
from ...telemetry.text import clean_text, json_text
from .lived_time import of_calendar
from .rows import LOG, OPERATION

VERSION = 1
_LARGEST = 2**53 - 1  # what all readers of JSON understand
_LONGEST_S = 1e9
_LABEL_LENGTH = 256

# It writes what is sorted already in a third of the time that orjson takes.
_canonical = msgspec.json.Encoder(order="sorted").encode


class Columns(NamedTuple):
    """The fields of a header that the table of events repeats, for queries."""

    operation: str
    op_class: str
    store: str
    method: str
    status: str
    nested: int
    duration_us: int
    feature: str | None


class Header(NamedTuple):
    """
    A header before its position in the log is known.

    Attributes:
        kind: ``operation`` or ``log``.
        fields: Those that its position decides are None.
        occurred_us: Start, microseconds since 1970 UTC.
    """

    kind: str
    fields: dict[str, Any]
    occurred_us: int
    columns: Columns


def sealed(fields: Mapping[str, Any]) -> bytes:
    """Return a complete header as canonical JSON (RFC 8785)."""
    entities: Mapping[str, Any] = fields.get("redactions") or {}
    if not "".join(entities).isascii():
        # A recognizer of the user's has named one. Beyond U+FFFF the order of RFC 8785, that of
        # UTF-16, is not that of code points, which others are sorted by.
        ordered = sorted(entities.items(), key=lambda pair: pair[0].encode("utf-16-be"))
        fields = {**fields, "redactions": msgspec.Raw(orjson.dumps(dict(ordered)))}
    return _canonical(fields)


_COMMON = (
    *("operation", "op_class", "store", "method", "status", "nested", "feature"),
    *("agent", "apart", "deletes", "error", "foreign_hits", "hits", "journal", "late", "neutral"),
    "purpose",
)
_common_of = attrgetter(*_COMMON)


class _Template(NamedTuple):
    """The header of many events, their own fields left open, and its columns before and behind."""

    fields: dict[str, Any]
    columns: tuple[str, str, str, str, str, int]
    feature: str | None


@lru_cache(4_096)
def _template(values: tuple[Any, ...]) -> _Template:
    """Return what events have in common whose fields, by `_COMMON`, have these values."""
    of = dict(zip(_COMMON, values, strict=True))
    fields: dict[str, Any] = dict.fromkeys(_FIELDS)
    for name in ("agent", "error", "feature", "purpose"):
        fields[name] = label(of[name])
    for name in ("method", "operation", "store"):
        fields[name] = label(of[name]) or ""
    for name in ("foreign_hits", "hits"):
        fields[name] = _whole(of[name])
    for name in ("late", "nested", "neutral"):
        fields[name] = bool(of[name])
    # To the trail what another event tells as well: an operation of its own counts, wherever it is.
    fields["nested"] = fields["nested"] and not of["apart"]
    for name in ("journal", "op_class", "status"):
        fields[name] = of[name].value
    fields |= {"kind": OPERATION, "redactions": {}, "v": VERSION}
    if of["deletes"] is not None:
        fields["deletes"] = of["deletes"].value
    columns = (
        *(fields["operation"], fields["op_class"], fields["store"], fields["method"]),
        *(fields["status"], int(fields["nested"])),
    )
    return _Template(fields, columns, fields["feature"])


_FIELDS = (
    *("agent", "detail_commit", "duration_us", "error", "event_id", "feature", "foreign_hits"),
    *("hits", "journal", "kind", "late", "log", "method", "n_memories", "n_subjects", "nested"),
    *("neutral", "occurred_at", "op_class", "operation", "prev", "purpose", "recorded_at"),
    *("redactions", "seq", "size_bytes", "span_id", "status", "store", "tenant", "top_score"),
    *("trace_id", "usage", "v", "waited_us", "writer", "wseq"),
)
"""In the order in which they are written: sorting what is sorted takes half the time."""


def of_event(event: Event, n_memories: int) -> Header:
    """Return the header of an operation."""
    trace, occurred_us = event.trace, of_calendar(event.started_ns // 1_000)
    duration_us = micros(event.duration_s)
    common, columns, feature = _template(_common_of(event))
    fields = common | {
        "duration_us": duration_us,
        "event_id": f"{event.writer_id}-{event.writer_seq}",
        "n_memories": n_memories,
        "n_subjects": int(event.subject is not None),
        "occurred_at": occurred_us,
        "span_id": f"{trace.span_id:016x}",
        "trace_id": f"{trace.trace_id:032x}",
        "waited_us": micros(event.waited_s),
        "writer": event.writer_id,
        "wseq": event.writer_seq,
    }
    if event.redactions:
        fields["redactions"] = _redactions(event.redactions)
    if event.size_bytes is not None:
        fields["size_bytes"] = _whole(event.size_bytes)
    if event.top_score is not None:
        fields["top_score"] = _exact(event.top_score)
    if event.parts:
        fields |= _parts(event.parts)
    return Header(OPERATION, fields, occurred_us, Columns(*columns, duration_us, feature))


def _parts(parts: Iterable[EventPart]) -> dict[str, Any]:
    """Return what *parts* seal, those of other packages apart from the header's own fields."""
    found: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, Usage):
            found["usage"] = of_usage(part)
        elif (said := part.sealed()) is not None:
            within = found if part.__class__ in OWN else others
            within |= _clean({part.name: _sealable(said)})
    return found | {"parts": others} if others else found


def _sealable(said: Any) -> Any:
    """Return *said* with its fractions as text, which all readers of JSON read alike."""
    if isinstance(said, float):
        return _exact(said)
    if isinstance(said, Mapping):
        named = cast("Mapping[str, Any]", said)
        return {name: _sealable(each) for name, each in named.items()}
    if isinstance(said, list | tuple):
        return [_sealable(each) for each in cast("Sequence[Any]", said)]
    return said


def of_log(name: str, data: Mapping[str, Any], *, writer_id: str, occurred_us: int) -> Header:
    """Return the header of an event about the log itself."""
    fields = {
        "data": _clean(data),
        "duration_us": 0,
        "feature": None,
        "kind": LOG,
        "method": "",
        "nested": False,
        "occurred_at": occurred_us,
        "op_class": LOG,
        "operation": name,
        "status": "ok",
        "store": "audit",
        "v": VERSION,
        "writer": writer_id,
        "wseq": 0,
    }
    columns = Columns(name, LOG, "audit", "", "ok", 0, 0, None)
    return Header(LOG, fields, occurred_us, columns)


def _redactions(redactions: Mapping[str, int]) -> dict[str, Any]:
    try:
        return _redacted(*redactions.items())
    except TypeError:  # not all counts are numbers
        return _redacted.__wrapped__(*redactions.items())


@lru_cache(1_024)
def _redacted(*found: tuple[str, int]) -> dict[str, Any]:
    return _clean(dict(found))


def _clean(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return *known* with what JSON cannot hold replaced; see `json_text`."""
    clean: dict[str, Any] = orjson.loads(json_text(dict(known)))
    return clean


def of_usage(usage: Usage) -> dict[str, Any]:
    """Return what is sealed of a model call's tokens and cost."""
    return {
        "cache_write_tokens": count(usage.cache_write_tokens),
        "cached_tokens": count(usage.cached_tokens),
        "cost_usd": _exact(usage.cost_usd),
        "input_tokens": count(usage.input_tokens),
        "model": label(usage.model),
        "namespace": [label(each) for each in usage.namespace],
        "node": label(usage.node),
        "output_tokens": count(usage.output_tokens),
        "provider": label(usage.provider),
        "reasoning_tokens": count(usage.reasoning_tokens),
        "reported": usage.reported,
        "time_to_first_token_s": _exact(usage.time_to_first_token_s),
    }


@lru_cache(4_096)  # the same few names, over and over
def label(text: str | None) -> str | None:
    """Return a name as it is kept: no lone surrogates, not too long."""
    if text is None or (text.isascii() and len(text) <= _LABEL_LENGTH):
        return text
    return clean_text(text)[:_LABEL_LENGTH]


def count(number: int | None) -> int | None:
    """Return a number that all readers of JSON understand."""
    return number if number is None or number <= _LARGEST else _LARGEST


def _whole(number: int | None) -> int | None:
    return None if number is None else min(int(number), _LARGEST)


def micros(seconds: float) -> int:
    """Return microseconds; 0 for what a clock cannot have said."""
    return round(seconds * 1e6) if 0 < seconds < _LONGEST_S else 0


def finite(number: float | None) -> float | None:
    """Return *number* unless JSON and SQL have no word for it."""
    return number if number is not None and math.isfinite(number) else None


def _exact(number: float | None) -> str | None:
    """Return a fraction as text that reads back as the same number."""
    return repr(float(number)) if number is not None and math.isfinite(number) else None
