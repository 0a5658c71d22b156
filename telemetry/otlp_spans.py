"""An event as a span of the GenAI conventions, built after the fact with the ids it was given."""

from __future__ import annotations

import threading
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.util.types import AttributeValue

from . import semconv
from .crossing import Crossing
from .event import Event, Status
from .text import clean_text, json_text
from .trace import TraceRef
from .usage import Usage

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import Tracer, TracerProvider
    from opentelemetry.sdk.trace.id_generator import IdGenerator

SCOPE = "mnemoscope"
"""Name of our instrumentation scope."""

Attributes = dict[str, AttributeValue]

SINK = "otlp"
"""The sink's name, and so the key under which its subject hashes are made."""

_NOT_A_FAULT = frozenset({Status.OK, Status.EMPTY, Status.CANCELLED})


def span_name(event: Event) -> str:
    """Return ``chat <model>``, ``invoke_agent <graph>``…, and else the operation alone."""
    if event.usage:
        return f"{event.operation} {event.usage.model}"
    return f"{event.operation} {event.method}" if event.is_frame else event.operation


def span_kind(event: Event) -> SpanKind:
    """Return CLIENT, or INTERNAL for the graphs and nodes around model calls."""
    return SpanKind.INTERNAL if event.is_frame else SpanKind.CLIENT


def span_status(event: Event) -> StatusCode:
    """Return ERROR where the caller did not get what the store was asked for."""
    return StatusCode.UNSET if event.status in _NOT_A_FAULT else StatusCode.ERROR


def error_type(event: Event) -> str | None:
    """Return the class of the failure: the exception's type, or else the status."""
    if event.error is not None or event.status.is_normal:
        return event.error
    return event.status.value


def span_attributes(event: Event, *, content: bool = False) -> Attributes:
    """Return the span's attributes. Content is among them only if asked for."""
    found = _common(event) | _caller(event) | _redactions(event)
    if event.crossing is not None:
        found |= _budget(event.crossing)
    elif event.is_frame:
        found |= _frame(event)
    else:
        found |= _model(event.usage) if event.usage else _memory(event)
    if event.store == "qdrant":
        found |= _database(event)
    if content and event.content is not None:
        found[semconv.CONTENT] = json_text(event.content.value)
    return {key: _clean(value) for key, value in found.items() if value is not None}


def _clean(value: Any) -> AttributeValue:
    # One lone surrogate in a thread id, and protobuf refuses the whole batch.
    if isinstance(value, tuple):
        return [clean_text(each) for each in cast("tuple[str, ...]", value)]
    return clean_text(value) if isinstance(value, str) else value


def _common(event: Event) -> dict[str, Any]:
    return {
        semconv.OPERATION_NAME: event.operation,
        semconv.STORE: event.store,
        semconv.METHOD: event.method,
        semconv.CLASS: event.op_class.value,
        semconv.STATUS: event.status.value,
        semconv.ERROR_TYPE: error_type(event),
        semconv.NEUTRAL: event.neutral,
        semconv.LATE: event.late,
        semconv.JOURNAL: event.journal.value or None,
        semconv.NESTED: event.nested,
        semconv.WAITED_S: event.waited_s,
        semconv.SIZE_BYTES: event.size_bytes,
        semconv.ITERATION: event.iteration,
        semconv.INNER_COST_USD: event.inner_cost_usd,
        semconv.EVENT_ID: event.event_id,
    }


def _caller(event: Event) -> dict[str, Any]:
    return {
        semconv.ENDUSER_PSEUDO_ID: event.subject.hashed(SINK) if event.subject else None,
        semconv.AGENT_NAME: event.agent,
        semconv.CONVERSATION_ID: event.run,
        semconv.TENANT: event.tenant,
        semconv.FEATURE: event.feature,
    }


def _redactions(event: Event) -> dict[str, Any]:
    return {f"{semconv.REDACTIONS}.{entity}": n for entity, n in event.redactions.items()}


def _memory(event: Event) -> dict[str, Any]:
    single = event.memory_ids[0] if len(event.memory_ids) == 1 else None
    return {
        semconv.PROVIDER_NAME: event.store,
        semconv.MEMORY_STORE_ID: event.collection,
        semconv.MEMORY_RECORD_ID: single,
        semconv.MEMORY_RECORD_COUNT: _records(event),
        semconv.TOP_SCORE: event.top_score,
    }


def _frame(event: Event) -> dict[str, Any]:
    if event.operation == "invoke_agent":
        return {semconv.AGENT_NAME: event.agent or event.method}
    named = _NAMED.get(event.operation)
    return {named: event.method} if named else {}


_NAMED = {"execute_node": semconv.NODE, "execute_tool": semconv.TOOL_NAME}


def _records(event: Event) -> int | None:
    if event.hits is not None:
        return event.hits
    return len(event.memory_ids) or None


def _database(event: Event) -> dict[str, Any]:
    return {
        semconv.DB_SYSTEM_NAME: "qdrant",
        semconv.DB_OPERATION_NAME: event.method,
        semconv.DB_COLLECTION_NAME: event.collection,
    }


def _model(usage: Usage) -> dict[str, Any]:
    first_chunk_s = usage.time_to_first_token_s
    return {
        semconv.PROVIDER_NAME: usage.provider,
        semconv.REQUEST_MODEL: usage.model,
        semconv.RESPONSE_MODEL: usage.model,
        semconv.REQUEST_STREAM: True if first_chunk_s is not None else None,
        semconv.RESPONSE_TIME_TO_FIRST_CHUNK: first_chunk_s,
        semconv.USAGE_REPORTED: None if usage.reported else False,
        semconv.USAGE_INPUT_TOKENS: usage.input_tokens if usage.reported else None,
        semconv.USAGE_OUTPUT_TOKENS: usage.output_tokens if usage.reported else None,
        semconv.USAGE_CACHE_READ_TOKENS: usage.cached_tokens or None,
        semconv.USAGE_CACHE_CREATION_TOKENS: usage.cache_write_tokens or None,
        semconv.USAGE_REASONING_TOKENS: usage.reasoning_tokens or None,
        semconv.NODE: usage.node,
        semconv.NAMESPACE: usage.namespace or None,
        semconv.COST_USD: usage.cost_usd,
    }


def _budget(crossing: Crossing) -> dict[str, Any]:
    return {
        semconv.BUDGET_NAME: crossing.budget,
        semconv.BUDGET_LEVEL: crossing.level.value,
        semconv.BUDGET_UNIT: crossing.unit,
        semconv.BUDGET_SPENT: crossing.spent,
        semconv.BUDGET_LIMIT: crossing.limit,
        semconv.BUDGET_PERIOD_S: crossing.period_s,
        semconv.BUDGET_BURN_PER_HOUR: crossing.burn_per_hour,
    }


class AssignedIds(threading.local):
    """
    Hands out the ids of `ref`, in place of a tracer's id generator.

    Per thread, since the SDK gives two sinks with one provider the same tracer.

    Attributes:
        ref: The ids that the next span gets.
    """

    def __init__(self, replaced: Any) -> None:
        self.ref = TraceRef(1, 1)
        self._replaced = replaced

    def generate_span_id(self) -> int:
        """Return the id that was captured when the operation began."""
        return self.ref.span_id

    def generate_trace_id(self) -> int:
        """Return the id that was captured when the operation began."""
        return self.ref.trace_id

    def is_trace_id_random(self) -> bool:
        """Return what the replaced generator says: ids of its making, or of ours, are random."""
        return getattr(self._replaced, "is_trace_id_random", bool)()


class DeferredSpans:
    """
    Builds spans of finished operations through a provider.

    Args:
        provider: Whose processors, sampler, limits and resource the spans get.
        content: Whether redacted content goes onto spans.
    """

    def __init__(self, provider: TracerProvider, *, content: bool) -> None:
        self._content = content
        self._tracer = provider.get_tracer(SCOPE, version("mnemoscope"))
        replaced = getattr(self._tracer, "id_generator", None)
        self._ids = replaced if isinstance(replaced, AssignedIds) else AssignedIds(replaced)
        cast("Tracer", self._tracer).id_generator = cast("IdGenerator", self._ids)

    def write(self, event: Event) -> None:
        """Start and end the span of *event*, unless its trace is not sampled."""
        if not event.trace.sampled:
            return
        self._ids.ref = event.trace
        span = self._tracer.start_span(
            span_name(event),
            context=parent_context(event.trace),
            kind=span_kind(event),
            attributes=span_attributes(event, content=self._content),
            start_time=event.started_ns,
        )
        if span_status(event) is StatusCode.ERROR:
            span.set_status(StatusCode.ERROR)
        span.end(end_time=event.ended_ns)


def parent_context(ref: TraceRef) -> Context:
    """Return a context that holds nothing but the parent of *ref*, if it has one."""
    if ref.parent_span_id is None:
        return Context()
    return _holding(ref, ref.parent_span_id, is_remote=ref.parent_is_remote)


def own_context(ref: TraceRef) -> Context:
    """Return a context in which the span of *ref* itself is current."""
    return _holding(ref, ref.span_id, is_remote=False)


def _holding(ref: TraceRef, span_id: int, *, is_remote: bool) -> Context:
    flags = TraceFlags(TraceFlags.SAMPLED if ref.sampled else TraceFlags.DEFAULT)
    held = SpanContext(ref.trace_id, span_id, is_remote=is_remote, trace_flags=flags)
    return set_span_in_context(NonRecordingSpan(held), Context())
