"""
A span of anybody's without personal data: a new one, since others hold the original.

Redaction is handed in: this package knows none of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util import BoundedList
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, Status

from .span_counts import SpanOutcome
from .span_positions import IDS, NAME, NAMES, OURS, PEOPLE, SECRETS
from .spans import SCOPE

FAILED = "[REDACTED:error]"
"""Stands for what could not be redacted."""

_SECRET = "<SECRET>"  # noqa: S105 - stands for one

_LABELLED_CHARS = 1_024
"""Length of values that are read a second time, behind the last word of their key."""

_DIGIT = re.compile(r"\d")

_PASSING = frozenset({bool, int, float, type(None)})

T = TypeVar("T")


class SpanRedaction(Protocol):
    """The redaction of one span."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of replacements so far, by entity."""
        ...

    def text(self, text: str, /) -> str:
        """Return *text* redacted."""
        ...

    def value(self, value: Any, /) -> Any:
        """Return a value of any type redacted."""
        ...

    def label(self, text: str, /) -> str:
        """Return a name redacted: different ones stay different."""
        ...

    def identifier(self, text: str, /) -> str:
        """Return an id redacted, unless a machine made it."""
        ...


BeginSpan = Callable[[Sequence[str]], SpanRedaction]
"""Begins the redaction of a span about the people with the given identifiers."""

NoteFailure = Callable[[Exception], None]


def redact_span(
    span: ReadableSpan, begin: BeginSpan, note_failure: NoteFailure
) -> tuple[ReadableSpan, SpanOutcome]:
    """Return a redacted copy of *span*, and whether anything was replaced."""
    redactor = _SpanRedactor(span, begin(_people(span)), note_failure)
    return redactor.copy_of(span), redactor.outcome


def _people(span: ReadableSpan) -> list[str]:
    """Return the identifiers of whom *span* is about, sorted: the cache has them in one order."""
    held = [each or {} for each in (span.attributes, *(event.attributes for event in span.events))]
    found = (each[key] for each in held for key in PEOPLE.intersection(each))
    return sorted({each for each in found if isinstance(each, str) and each})


class _SpanRedactor:
    def __init__(
        self, span: ReadableSpan, redaction: SpanRedaction, note_failure: NoteFailure
    ) -> None:
        scope = span.instrumentation_scope
        self._redaction = redaction
        self._note_failure = note_failure
        self._ours = OURS if scope is not None and scope.name == SCOPE else frozenset[str]()
        self._has_failed = False
        self._has_secrets = False

    @property
    def outcome(self) -> SpanOutcome:
        if self._has_failed:
            return SpanOutcome.FAILED
        is_masked = self._has_secrets or self._redaction.counts
        return SpanOutcome.MASKED if is_masked else SpanOutcome.CLEAN

    def copy_of(self, span: ReadableSpan) -> ReadableSpan:
        events = (
            Event(self._text(each.name), self._attributes_of(each), each.timestamp)
            for each in span.events
        )
        links = (Link(each.context, self._attributes_of(each)) for each in span.links)
        status = span.status
        if status.description is not None:
            status = Status(status.status_code, self._text(status.description))
        return ReadableSpan(
            name=self._text(span.name),
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
            scope.name, scope.version, scope.schema_url, self._mapping(scope.attributes)
        )

    def _attributes_of(self, holder: ReadableSpan | Event | Link) -> BoundedAttributes:
        held = cast("Mapping[str, Any]", holder.attributes or {})
        redacted = self._mapping(held)
        result = BoundedAttributes(attributes=redacted)
        result.dropped = holder.dropped_attributes + len(held) - len(redacted)
        return result

    def _mapping(self, held: Mapping[str, Any]) -> dict[str, Any]:
        keys = {key: self._key(key) for key in held}
        # By the key as it was: what a value means is not to depend on what redaction made of its
        # name.
        return {keys[key]: self._closed(self._at, key, item) for key, item in held.items()}

    def _key(self, key: str) -> str:
        if key in NAMES or key in IDS or key in PEOPLE or key in self._ours:
            return key
        return self._closed(self._redaction.label, key)

    def _at(self, key: str, value: Any) -> Any:
        """Return *value* redacted as what stands at *key*."""
        if type(value) in _PASSING or key in self._ours:
            return value
        if isinstance(value, str):
            return self._string(key, value)
        if isinstance(value, Mapping):
            return self._mapping(cast("Mapping[str, Any]", value))
        if isinstance(value, (list, tuple)):
            items = cast("Sequence[Any]", value)
            return tuple(self._closed(self._at, key, each) for each in items)
        return self._redaction.value(value)

    def _string(self, key: str, value: str) -> str:
        # Any library may put a prompt where the conventions want a name.
        if key in NAMES and NAME.fullmatch(value):
            return value
        if key in IDS:
            return self._redaction.identifier(value)
        if key in PEOPLE:
            return self._redaction.label(value)
        word = key.rpartition(".")[2].lower()
        if word in SECRETS:
            self._has_secrets = True
            return _SECRET
        redacted = cast("str", self._redaction.value(value))
        if redacted == value and len(value) <= _LABELLED_CHARS and _DIGIT.search(value):
            return self._labelled(f"{word}: ", value)
        return redacted

    def _labelled(self, label: str, value: str) -> str:
        """Redact *value* as it reads behind its label: ``phone: …``."""
        redacted = self._redaction.text(label + value)
        return redacted.removeprefix(label)

    def _text(self, text: str) -> str:
        return self._closed(self._redaction.text, text)

    def _closed(self, redact: Callable[..., T], *given: Any) -> T | str:
        """Return the result of *redact*, or a placeholder if *redact* raises."""
        try:
            return redact(*given)
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality
            self._has_failed = True
            self._note_failure(exc)
            return FAILED


def _listed(items: Iterable[T], dropped: int) -> Sequence[T]:
    held = tuple(items)
    result = cast("Any", BoundedList).from_seq(len(held), held)
    # How many the host's limits had dropped is part of the span.
    result.dropped = dropped
    return cast("Sequence[T]", result)
