"""
A span of anybody's without personal data: a new one, since others hold the original.

Redaction is handed in: this package knows none of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util import BoundedList
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, Status

from .redacted_attributes import AttributeRedactor, BeginSpan, NoteFailure
from .span_counts import SpanOutcome
from .span_positions import OURS, PEOPLE
from .spans import SCOPE

T = TypeVar("T")


def redact_span(
    span: ReadableSpan, begin: BeginSpan, note_failure: NoteFailure
) -> tuple[ReadableSpan, SpanOutcome]:
    """Return a redacted copy of *span*, and whether anything was replaced."""
    scope = span.instrumentation_scope
    ours = OURS if scope is not None and scope.name == SCOPE else frozenset[str]()
    redactor = _SpanRedactor(begin(_people(span)), note_failure, ours)
    return redactor.copy_of(span), redactor.outcome


def _people(span: ReadableSpan) -> list[str]:
    """Return the identifiers of whom *span* is about, sorted: the cache has them in one order."""
    held = [each or {} for each in (span.attributes, *(event.attributes for event in span.events))]
    found = (each[key] for each in held for key in PEOPLE.intersection(each))
    return sorted({each for each in found if isinstance(each, str) and each})


class _SpanRedactor(AttributeRedactor):
    @property
    def outcome(self) -> SpanOutcome:
        if self.has_failed:
            return SpanOutcome.FAILED
        return SpanOutcome.MASKED if self.is_masked else SpanOutcome.CLEAN

    def copy_of(self, span: ReadableSpan) -> ReadableSpan:
        events = (
            Event(self.text(each.name), self._attributes_of(each), each.timestamp)
            for each in span.events
        )
        links = (Link(each.context, self._attributes_of(each)) for each in span.links)
        status = span.status
        if status.description is not None:
            status = Status(status.status_code, self.text(status.description))
        return ReadableSpan(
            name=self.text(span.name),
            context=span.get_span_context(),
            parent=span.parent,
            resource=span.resource,
            events=_listed(events, span.dropped_events),
            links=_listed(links, span.dropped_links),
            kind=span.kind,
            status=status,
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=self._scope(span.instrumentation_scope),
            # Last: prompts may use up what text a span may have.
            attributes=self._attributes_of(span),
        )

    def _scope(self, scope: InstrumentationScope | None) -> InstrumentationScope | None:
        if scope is None or not scope.attributes:
            return scope
        return InstrumentationScope(
            scope.name, scope.version, scope.schema_url, self.mapping(scope.attributes)
        )

    def _attributes_of(self, holder: ReadableSpan | Event | Link) -> BoundedAttributes:
        held = cast("Mapping[str, Any]", holder.attributes or {})
        redacted = self.mapping(held)
        result = BoundedAttributes(attributes=redacted)
        result.dropped = holder.dropped_attributes + len(held) - len(redacted)
        return result


def _listed(items: Iterable[T], dropped: int) -> Sequence[T]:
    held = tuple(items)
    result = cast("Any", BoundedList).from_seq(len(held), held)
    # How many the host's limits had dropped is part of the span.
    result.dropped = dropped
    return cast("Sequence[T]", result)
