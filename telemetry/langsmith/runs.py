"""Conversion of events to LangSmith runs: place in the tree, type and fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, cast

from ..event.event import Event, OperationClass
from ..event.parent_run import ParentRun, id_of_span, ids_in, order_below, run_id
from ..event.usage import Usage
from ..otlp.conventions.attributes import error_type
from ..text import second_text

SINK: Final = "langsmith"
"""The sink's name, and so the key under which its subject hashes are made."""

_HELD: Final = 1_024

_NOWHERE: Final = ParentRun()


def runs_of(batch: Sequence[Event], project: str, *, content: bool) -> Iterator[dict[str, Any]]:
    """
    Yield the batch as finished runs of *project*. Content is in them only if asked for.

    Those that LangSmith is told of by somebody else are left out.
    """
    by_span = {event.trace.span_id: event for event in batch}
    for event in batch:
        # LangChain reports its own model calls: each would be there, and cost, twice.
        if event.parent_run is None or not event.parent_run.is_reported:
            yield _run(event, _order(event, by_span), project, content=content)


def _order(event: Event, by_span: Mapping[int, Event]) -> str:
    """
    Return the run's dotted order.

    A nested operation hangs below the one it is nested in where both are in one batch; both began
    under the same run.
    """
    return order_below(_order_above(event, by_span), event.started_ns, _run_id(event))


def _order_above(event: Event, by_span: Mapping[int, Event]) -> str | None:
    if event.op_class is not OperationClass.MODEL:
        # What encloses an event ends after it, and may be in a later batch.
        around = by_span.get(event.trace.parent_span_id or 0)
        if event.nested and around is not None and around is not event:
            return _order(around, by_span)
    return event.parent_run.order if event.parent_run else None


def _run_id(event: Event) -> str:
    # What others hang below is known by its span, before it is an event.
    if event.op_class is OperationClass.MODEL and not event.is_notice:
        return id_of_span(event.trace)
    return run_id(event.event_id)


def _time_text(ns: int) -> str:
    seconds, micros = divmod(ns // 1_000, 1_000_000)
    return f"{second_text(seconds)}.{micros:06}+00:00"


def _run(event: Event, order: str, project: str, *, content: bool) -> dict[str, Any]:
    usage, place = event.usage, event.parent_run or _NOWHERE
    root_id, parent_id, own_id = ids_in(order)
    return {
        "id": own_id,
        "trace_id": root_id,
        "parent_run_id": parent_id,
        "dotted_order": order,
        "name": usage.model if usage else f"{event.operation} {event.store}",
        "run_type": _run_type(event),
        "start_time": _time_text(event.started_ns),
        "end_time": _time_text(event.ended_ns),
        "inputs": _inputs(event) if content else {},
        "outputs": _outputs(event, content=content),
        "error": error_type(event),
        # None, and not empty: each part of a run costs its sender as much as building the run.
        "events": _first_token(event, usage) if usage else None,
        "tags": list(place.tags) or None,
        "extra": {"metadata": _metadata(event)},
        "session_name": place.project or project,
    }


def _run_type(event: Event) -> str:
    if event.usage is not None:
        return "llm"
    if event.op_class is OperationClass.MODEL:
        return "chain"
    # What LangSmith shows the documents of; it has no type for writing.
    return "retriever" if event.op_class is OperationClass.RECALL else "tool"


def _inputs(event: Event) -> dict[str, Any]:
    found = event.content or event.given
    if found is None:
        return {}
    return _named(found.value, "content" if event.usage is None else "messages")


def _outputs(event: Event, *, content: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if event.hits is not None:
        found["hits"] = event.hits
    if event.top_score is not None:
        found["top_score"] = event.top_score
    if content and event.answer is not None:
        if event.op_class is OperationClass.MODEL:
            return _named(event.answer.value, "output" if event.usage is None else "messages")
        found["answer"] = event.answer.value
    if (root := event.root) is not None:
        found |= _present({"origin": event.collection, "root": root})
    return found


def _named(value: Any, name: str) -> dict[str, Any]:
    """Return *value* as a run has it: what has no names of its own is called *name*."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {name: value}


def _first_token(event: Event, usage: Usage) -> list[dict[str, Any]] | None:
    if usage.time_to_first_token_s is None:
        return None
    at = _time_text(event.started_ns + round(usage.time_to_first_token_s * 1e9))
    return [{"name": "new_token", "time": at}]


_COMMON: Final = {
    "status": "status",
    "store": "store",
    "method": "method",
    "class": "op_class",
    "neutral": "neutral",
    "late": "late",
    "journal": "journal",
    "nested": "nested",
    "tenant": "tenant",
    "agent": "agent",
    "feature": "feature",
}
"""Metadata that many events have in common, and the fields of events that they are."""

_FLAGS: Final = frozenset({"neutral", "late", "journal", "nested"})
_values_of: Final = attrgetter(*_COMMON.values())


@lru_cache(_HELD)
def _in_common(values: tuple[Any, ...]) -> dict[str, Any]:
    """Return the metadata with these values, by `_COMMON`; of flags, those that are set."""
    known = dict(zip(_COMMON, values, strict=True))
    return {
        name: str(value) if isinstance(value, str) else value
        for name, value in known.items()
        if value is not None and (value or name not in _FLAGS)
    }


def _metadata(event: Event) -> dict[str, Any]:
    found = {
        **_in_common(_values_of(event)),
        "event_id": event.event_id,
        "otel_trace_id": event.trace.trace_hex,
        "otel_span_id": event.trace.span_hex,
    }
    if event.subject is not None:
        found["subject"] = event.subject.hashed(SINK)
    if event.run is not None:
        found["thread_id"] = event.run
    if event.redactions:
        found["redactions"] = dict(event.redactions)
    for part in event.parts:
        found = (_model(part) if isinstance(part, Usage) else _present(part.fields())) | found
    return found


def _model(usage: Usage) -> dict[str, Any]:
    return _present(
        {
            "ls_model_type": "chat",
            "ls_model_name": usage.model,
            "ls_provider": usage.provider,
            "langgraph_node": usage.node,
            "namespace": "/".join(usage.namespace) or None,
            "usage_metadata": _usage(usage),
        }
    )


def _usage(usage: Usage) -> dict[str, Any]:
    read, written = usage.cached_tokens, usage.cache_write_tokens
    return _present(
        {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
            "input_token_details": {"cache_read": read, "cache_creation": written},
            "output_token_details": {"reasoning": usage.reasoning_tokens},
            "total_cost": usage.cost_usd,
        }
    )


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
