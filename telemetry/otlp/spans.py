"""Spans of finished operations, built through an SDK with the ids captured at their start."""

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

from ..event.event import Event
from ..event.trace import TraceRef
from ..text import clean_text
from .conventions.attributes import span_attributes, template_key, template_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import Tracer, TracerProvider
    from opentelemetry.sdk.trace.id_generator import IdGenerator

SCOPE = "mnemoscope"
"""Name of our instrumentation scope."""


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
        """Return the answer of the replaced generator."""
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
        kind = template_of(template_key(event))
        span = self._tracer.start_span(
            clean_text(kind.span_name),
            context=parent_context(event.trace),
            kind=SpanKind.INTERNAL if kind.is_frame else SpanKind.CLIENT,
            attributes=span_attributes(event, content=self._content),
            start_time=event.started_ns,
        )
        if kind.is_failure:
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
