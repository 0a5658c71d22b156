"""
OTLP documents without personal data: traces and logs of anybody's, as JSON has them.

The structure stays as it is, whoever wrote it: Langfuse's worker has ids as lists of bytes. Every
text is redacted, but for numbers and ids in their places; so is every name that is none of OTLP's.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from .redacted_attributes import AttributeRedactor, BeginSpan, NoteFailure
from .span_positions import PEOPLE, words

_ROOTS: Final = words("resourceSpans resourceLogs")
_SCOPES: Final = words("scopeSpans scopeLogs")
_ITEMS: Final = words("spans logRecords")
"""What is about somebody each: people are replaced wherever they stand in one."""

_NUMBERS: Final = words("""
    startTimeUnixNano endTimeUnixNano timeUnixNano observedTimeUnixNano intValue doubleValue
    droppedAttributesCount droppedEventsCount droppedLinksCount flags kind code severityNumber
""")
_IDS: Final = words("traceId spanId parentSpanId")
_NAMES: Final = (_ROOTS | _SCOPES | _ITEMS | _NUMBERS | _IDS).union(
    words("""
    resource scope events links status attributes name version message traceState schemaUrl
    severityText eventName body value values stringValue boolValue bytesValue arrayValue kvlistValue
    type data low high unsigned
    """)
)
"""Of OTLP, and of a number and of bytes as JavaScript has them."""

_NUMBER: Final = re.compile(
    r"-?\d{1,20}(\.\d+)?([eE][-+]?\d+)?|-?Infinity|NaN"
    r"|(SPAN_KIND|STATUS_CODE|SEVERITY_NUMBER)_[A-Z\d_]{1,32}",
    re.ASCII,
)
_ID: Final = re.compile(r"([\da-fA-F]{16}){0,2}|[\w+/]{11}=|[\w+/]{22}==", re.ASCII)
"""In hexadecimal as OTLP has it, in base64 as other JSON of protobuf does, or none."""


class NotOtlpError(Exception):
    """A document that is none of OTLP's traces or logs."""


def redact_document(document: Any, begin: BeginSpan, note_failure: NoteFailure) -> Any:
    """
    Return a redacted copy of *document*.

    Args:
        document: An export request, or a list of its ``resourceSpans``.
        begin: Begins the redaction of one span or record.
        note_failure: Is given what a redaction raised; the value is ``[REDACTED:error]`` then.

    Raises:
        NotOtlpError: It is neither.
    """
    is_list = isinstance(document, list)
    blocks = cast("list[Any]", document if is_list else [document])
    expected = _SCOPES if is_list else _ROOTS
    if not all(isinstance(each, dict) and expected & each.keys() for each in blocks):
        raise NotOtlpError
    return _Walk(begin, note_failure, []).of("", document, None)


class _Walk:
    """The way through a part of a document that is about the same people."""

    def __init__(self, begin: BeginSpan, note_failure: NoteFailure, people: list[str]) -> None:
        self._begin = begin
        self._note_failure = note_failure
        # No key is taken for one of ours: anybody may name a library as we do.
        self._redactor = AttributeRedactor(begin(people), note_failure, frozenset())

    def of(self, name: str, value: Any, key: str | None) -> Any:
        """Return what stands in the field *name* redacted, below the attribute *key*."""
        if name == "bytesValue":
            return base64.b64encode(
                self._redactor.closed(self._bytes, key, value).encode()
            ).decode()
        if isinstance(value, list):
            return [self.of(name, each, key) for each in cast("Sequence[Any]", value)]
        if isinstance(value, dict):
            return self._object(name, cast("dict[str, Any]", value), key)
        if isinstance(value, str):
            return self._text(name, value, key)
        return value  # a number, which no text can hide in

    def _object(self, name: str, held: dict[str, Any], key: str | None) -> dict[str, Any]:
        if name in _ITEMS and (people := sorted(set(_people_in(held)))):
            about = _Walk(self._begin, self._note_failure, people)
            return about._object("", held, None)
        if isinstance(own := held.get("key"), str):
            # Whatever else stands in a pair is left out: OTLP has these two.
            redacted = self._redactor.key(own)
            return {"key": redacted, "value": self.of("value", held.get("value"), own)}
        return {
            each if each in _NAMES else self._redactor.key(each): self.of(each, of, key)
            for each, of in held.items()
        }

    def _text(self, name: str, text: str, key: str | None) -> str:
        if (name in _NUMBERS and _NUMBER.fullmatch(text)) or (name in _IDS and _ID.fullmatch(text)):
            return text
        if key is None:
            return self._redactor.text(text)
        return str(self._redactor.closed(self._redactor.at, key, text))

    def _bytes(self, key: str | None, value: Any) -> str:
        """Return bytes as the text that they are, redacted."""
        return self._text("", base64.b64decode(value, validate=True).decode(), key)


def _people_in(item: dict[str, Any]) -> Iterator[str]:
    """Yield the identifiers of whom a span or record is about."""
    for held in (item, *_objects(item.get("events"))):
        for pair in _objects(held.get("attributes")):
            if pair.get("key") in PEOPLE:
                found = (each.get("stringValue") for each in _objects([pair.get("value")]))
                yield from (each for each in found if isinstance(each, str) and each)


def _objects(held: Any) -> list[dict[str, Any]]:
    found = cast("Sequence[Any]", held) if isinstance(held, list) else ()
    return [cast("dict[str, Any]", each) for each in found if isinstance(each, dict)]
