"""Conversion of events to LangSmith runs: place in the tree, type and fields."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, cast

from ..event.event import Event, OperationClass
from ..event.usage import Usage
from ..otlp.attributes import error_type

SINK: Final = "langsmith"
"""The sink's name, and so the key under which its subject hashes are made."""

RUNS: Final = uuid.UUID("6f1c6d0e-8a6b-5b0f-9d61-0d6d1f6a7c11")
"""Namespace of run ids: the same event has the same run, however often it is sent."""

_RUNS: Final = hashlib.sha1(RUNS.bytes, usedforsecurity=False)
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - in UTC, like all times here
_COMPACT: Final = str.maketrans("", "", "-:")
_UUID_LENGTH: Final = 36


def runs_of(batch: Sequence[Event], project: str, *, content: bool) -> list[dict[str, Any]]:
    """Return the batch as finished runs of *project*. Content is in them only if asked for."""
    by_span = {event.trace.span_id: event for event in batch}
    return [
        _run(event, _order(event, by_span), content=content) | {"session_name": project}
        for event in batch
    ]


def _order(event: Event, by_span: Mapping[int, Event]) -> str:
    """
    Return the run's dotted order: start and id of each run, from the root of its trace down.

    A nested operation hangs below the one it is nested in where both are in one batch; both began
    under the same run of the host's.
    """
    second, micros = _time(event.started_ns)
    start = f"{second.translate(_COMPACT)}{micros}Z"
    above = _order_above(event, by_span)
    if above is None:
        return start + _run_id(event)
    # LangSmith refuses a child that began before its parent, as a clock set back has it.
    return f"{above}.{max(start, _started(above))}{_run_id(event)}"


def _order_above(event: Event, by_span: Mapping[int, Event]) -> str | None:
    around = by_span.get(event.trace.parent_span_id or 0)
    if event.nested and around is not None and around is not event:
        return _order(around, by_span)
    return event.parent_run or None


def _started(order: str) -> str:
    return order.rpartition(".")[2][:-_UUID_LENGTH]


def _run_id(event: Event) -> str:
    """Return the UUID, version 5, of the event's id: `uuid.uuid5` takes four times as long."""
    name = _RUNS.copy()
    name.update(event.event_id.encode())
    digits = name.hexdigest()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def _time(ns: int) -> tuple[str, str]:
    """Return the second in UTC, as ISO 8601 has it, and the six digits of its microseconds."""
    seconds, micros = divmod(ns // 1_000, 1_000_000)
    return _second(seconds), f"{micros:06}"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    # Sums have no limits of the platform's, as `fromtimestamp` has.
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()


def _time_text(ns: int) -> str:
    second, micros = _time(ns)
    return f"{second}.{micros}+00:00"


def _run(event: Event, order: str, *, content: bool) -> dict[str, Any]:
    path = [each[-_UUID_LENGTH:] for each in order.split(".")]
    usage = event.usage
    return {
        "id": path[-1],
        "trace_id": path[0],
        "parent_run_id": path[-2] if len(path) > 1 else None,
        "dotted_order": order,
        "name": usage.model if usage else f"{event.operation} {event.store}",
        "run_type": _run_type(event),
        "start_time": _time_text(event.started_ns),
        "end_time": _time_text(event.ended_ns),
        "inputs": _inputs(event) if content else {},
        "outputs": _outputs(event),
        "error": error_type(event),
        # None, and not empty: each part of a run costs its sender as much as building the run.
        "events": _first_token(event, usage) if usage else None,
        "extra": {"metadata": _metadata(event)},
    }


def _run_type(event: Event) -> str:
    if event.usage is not None:
        return "llm"
    if event.op_class is OperationClass.MODEL:
        return "chain"
    return "retriever" if event.op_class is OperationClass.RECALL else "tool"


def _inputs(event: Event) -> dict[str, Any]:
    if event.content is None:
        return {}
    value = event.content.value
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"content": value}


def _outputs(event: Event) -> dict[str, Any]:
    found = {"hits": event.hits, "top_score": event.top_score}
    checkpoint = {"origin": event.collection, "root": event.root} if event.root else {}
    return _present(found | checkpoint)


def _first_token(event: Event, usage: Usage) -> list[dict[str, Any]] | None:
    if usage.time_to_first_token_s is None:
        return None
    at = _time_text(event.started_ns + round(usage.time_to_first_token_s * 1e9))
    return [{"name": "new_token", "time": at}]


def _metadata(event: Event) -> dict[str, Any]:
    return _present(
        {
            "status": event.status.value,
            "store": event.store,
            "method": event.method,
            "class": event.op_class.value,
            "neutral": event.neutral or None,
            "late": event.late or None,
            "journal": event.journal.value or None,
            "nested": event.nested or None,
            "iteration": event.iteration,
            "inner_cost": event.inner_cost_usd,
            "subject": event.subject.hashed(SINK) if event.subject else None,
            "tenant": event.tenant,
            "agent": event.agent,
            "feature": event.feature,
            "thread_id": event.run,
            "redactions": dict(event.redactions) or None,
            "event_id": event.event_id,
            "otel_trace_id": event.trace.trace_hex,
            "otel_span_id": event.trace.span_hex,
        }
    ) | _further(event)


def _further(event: Event) -> dict[str, Any]:
    if event.budget_event is not None:
        return event.budget_event.fields()
    return _model(event.usage) if event.usage else {}


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


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
