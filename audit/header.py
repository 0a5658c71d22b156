"""
The sealed part of an event, as text with its keys in order: canonical JSON (RFC 8785).

What many events have in common is written once, as a form, and each event fills in what is its own.
Where an event stands in the log is not known until it is stored: those places stay open (`%s`) in
what `of_event` and `of_log` return. That is twice as fast as building and writing a dict for
each event.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ..telemetry.crossing import Crossing
from ..telemetry.event import Event
from ..telemetry.text import clean_text, json_text
from ..telemetry.usage import Usage
from .rows import LOG, OPERATION

VERSION = 1
_LARGEST = 2**53 - 1  # what all readers of JSON understand
_LONGEST_S = 1e9
_LABEL_LENGTH = 256
_PLACED = {
    "detail_commit": "%%s",
    "log": '"%%s"',
    "prev": '"%%s"',
    "recorded_at": "%%d",
    "seq": "%%d",
    "tenant": "%%s",
}
_COUNTED = (
    *("duration_us", "foreign_hits", "hits", "n_memories", "occurred_at", "purpose", "redactions"),
    *("size_bytes", "top_score", "usage", "waited_us", "wseq"),
)


class Columns(NamedTuple):
    """What a header says that queries ask for, as the table of events repeats it."""

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
    A header before its place in the log is known.

    Attributes:
        kind: ``operation`` or ``log``.
        text: JSON with ``%s`` for what is not known yet. Of an operation: the commitment to its
            detail, as JSON; log; predecessor's hash; when recorded; number; tenant, as JSON. Of
            the log: event id, log, predecessor's hash, when recorded, number.
        occurred_us: Start, microseconds since 1970 UTC.
        columns: What the table repeats.
    """

    kind: str
    text: str
    occurred_us: int
    columns: Columns


def of_event(event: Event, n_memories: int) -> Header:
    """Return the header of an operation."""
    crossing, usage, trace = event.crossing, event.usage, event.trace
    form, start, feature = _form(
        event.writer_id,
        event.operation,
        event.op_class,
        event.store,
        event.method,
        event.status,
        event.nested,
        event.agent,
        event.feature,
        event.error,
        event.journal,
        event.late,
        event.neutral,
        event.subject is not None,
        None if crossing is None else _budget(crossing),
    )
    duration_us = micros(event.duration_s)
    occurred_us = event.started_ns // 1_000
    number = event.writer_seq
    text = form % (
        duration_us,
        number,
        _whole(event.foreign_hits),
        _whole(event.hits),
        n_memories,
        occurred_us,
        "null" if event.purpose is None else _once(label(event.purpose)),
        _redactions(event.redactions) if event.redactions else "{}",
        _whole(event.size_bytes),
        trace.span_id,
        "null" if event.top_score is None else _once(_exact(event.top_score)),
        trace.trace_id,
        "null" if usage is None else _once(of_usage(usage)),
        micros(event.waited_s),
        number,
    )
    return Header(OPERATION, text, occurred_us, Columns(*start, duration_us, feature))


def of_log(name: str, data: Mapping[str, Any], *, writer_id: str, occurred_us: int) -> Header:
    """Return the header of an event about the log itself."""
    known = {
        "data": dict(sorted(data.items())),
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
    parts = {each: _once(value) for each, value in known.items()}
    placed = {"event_id": '"%s"', "log": '"%s"', "prev": '"%s"', "recorded_at": "%d", "seq": "%d"}
    columns = Columns(name, LOG, "audit", "", "ok", 0, 0, None)
    return Header(LOG, _in_order(parts | placed), occurred_us, columns)


@lru_cache(1_024)
def _form(*known: Any) -> tuple[str, tuple[str, str, str, str, str, int], str | None]:
    """Return the text that events of one kind share, and the columns that they do."""
    writer, operation, op_class, store, method, status, nested, *others, budget = known
    agent, feature, error, journal, late, neutral, named = others
    start = (
        label(operation) or "",
        op_class.value,
        label(store) or "",
        label(method) or "",
        status.value,
        int(nested),
    )
    shared = {
        "agent": label(agent),
        "error": label(error),
        "feature": label(feature),
        "journal": journal.value,
        "kind": OPERATION,
        "late": bool(late),
        "n_subjects": int(named),
        "neutral": bool(neutral),
        "v": VERSION,
        "writer": writer,
        **dict(zip(Columns._fields, start, strict=False)),
        "nested": bool(nested),
    }
    parts = {name: _twice(json_text(each)) for name, each in shared.items()}
    if budget is not None:
        parts["budget"] = _twice(budget)
    # The ids end in what each event fills in.
    own = {"event_id": parts["writer"][:-1] + '-%d"', "span_id": '"%016x"', "trace_id": '"%032x"'}
    return _in_order(parts | dict.fromkeys(_COUNTED, "%s") | _PLACED | own), start, label(feature)


def _in_order(parts: Mapping[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{parts[name]}' for name in sorted(parts)) + "}"


def _once(value: Any) -> str:
    """Return JSON that is itself after one round of filling in."""
    return json_text(value).replace("%", "%%")


def _twice(text: str) -> str:
    return text.replace("%", "%%%%")


def _budget(crossing: Crossing) -> str:
    fields = sorted(crossing.fields().items())
    return json_text(
        {name: _exact(each) if isinstance(each, float) else each for name, each in fields}
    )


def _redactions(redactions: Mapping[str, int]) -> str:
    try:
        return _redacted(*redactions.items())
    except TypeError:  # not all counts are numbers
        return _once(dict(sorted(redactions.items())))


@lru_cache(1_024)
def _redacted(*found: tuple[str, int]) -> str:
    return _once(dict(sorted(found)))


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


def _whole(number: int | None) -> int | str:
    return "null" if number is None else int(number) if number <= _LARGEST else _LARGEST


def micros(seconds: float) -> int:
    """Return microseconds; 0 for what a clock cannot have said."""
    return round(seconds * 1e6) if 0 < seconds < _LONGEST_S else 0


def finite(number: float | None) -> float | None:
    """Return *number* unless JSON and SQL have no word for it."""
    return number if number is not None and math.isfinite(number) else None


def _exact(number: float | None) -> str | None:
    """Return a fraction as text that reads back as the same number."""
    return repr(float(number)) if number is not None and math.isfinite(number) else None
