"""
Encoding of events as the protobuf bytes of their spans, without intermediate objects.

The SDK builds a span with its locks, limits and copies, its exporter builds protobuf messages from
that, and those are serialised: 150 microseconds for what takes ten to write. What comes again with
each event is looked up. `attributes` has the content of a span; that both ways send the same is
found out with each exporter that is made (`direct`).

Field numbers are those of ``opentelemetry/proto/trace/v1/trace.proto``. A key on the wire is the
field's number shifted left by three, plus its type: 0 varint, 1 eight bytes, 2 length first, 5 four
bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from ...event.event import Event
from ...event.trace_ref import TraceRef
from ..conventions import semconv
from ..conventions.attributes import (
    TemplateKey,
    attributes_of_whose,
    own_attributes,
    template_key,
    template_of,
    whose,
)
from ..conventions.openinference import DOCUMENT_IDS

_HELD = 1_024
"""Pieces kept ready, of each kind. Those that come again are few."""

MOST_ATTRIBUTES = 100
"""More than a span may have here: the SDK drops some where there are 128."""

_MOST_ENTITIES = 30
_LONG = 128
# Values that never come again would push those that do out of the caches.
_NEW_EACH_TIME = frozenset(
    {
        *(semconv.EVENT_ID, semconv.MEMORY_RECORD_ID, semconv.CONTENT, semconv.OUTPUT_VALUE),
        *(semconv.RESPONSE_ID, semconv.TOOL_CALL_ID),
        *(semconv.INPUT_MESSAGES, semconv.OUTPUT_MESSAGES),
        *(semconv.TOOL_CALL_ARGUMENTS, semconv.TOOL_CALL_RESULT),
        *DOCUMENT_IDS,
    }
)

_INTERNAL, _CLIENT = b"\x30\x01", b"\x30\x03"
_NO_STATUS, _ERROR = b"\x7a\x00", b"\x7a\x02\x18\x02"
_DOUBLE = struct.Struct("<d").pack
_TIMES = struct.Struct("<BQBQ").pack


def varint(number: int) -> bytes:
    """Return *number* in groups of seven bits, the lowest first; as 64 bits if below 0."""
    if not -(1 << 63) <= number < 1 << 64:
        raise OverflowError("more than 64 bits")
    # Protobuf writes a negative number as its two's complement of 64 bits.
    number &= (1 << 64) - 1
    groups = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


_LENGTHS = tuple(map(varint, range(1_024)))


def framed(key: bytes, body: bytes) -> bytes:
    """Return *body* behind the *key* of its field and its length."""
    size = len(body)
    return key + (_LENGTHS[size] if size < len(_LENGTHS) else varint(size)) + body


def span_of(event: Event, flags: Callable[[TraceRef], bytes], *, content: bool) -> bytes:
    """
    Return the span of *event*, as a field of ``ScopeSpans``.

    Args:
        event: Sampled.
        flags: Returns the field that tells of a span's parent.
        content: Whether redacted content goes onto the span.

    Raises:
        TypeError, ValueError, OverflowError, struct.error: It holds what no attribute can.
    """
    ref = event.trace
    parts = [b"\x0a\x10", ref.trace_id.to_bytes(16), b"\x12\x08", ref.span_id.to_bytes(8)]
    if ref.parent_span_id is not None:
        parts += (b"\x22\x08", ref.parent_span_id.to_bytes(8))
    parts += (
        flags(ref),
        _TIMES(0x39, event.started_ns, 0x41, event.ended_ns),
        _in_common(template_key(event)),
        _whose(*whose(event)),
    )
    parts += attributes_of(own_attributes(event, content=content))
    return framed(b"\x12", b"".join(parts))


@lru_cache(maxsize=_HELD)
def _whose(pseudonym: str | None, run: str | None, tenant: str | None) -> bytes:
    return b"".join(attributes_of(attributes_of_whose(pseudonym, run, tenant)))


@lru_cache(maxsize=_HELD)
def _in_common(key: TemplateKey) -> bytes:
    """Return the encoded name, kind, status and attributes of a template."""
    kind = template_of(key)
    if len(kind.replaced) > _MOST_ENTITIES:
        raise ValueError("too many attributes")
    name = framed(b"\x2a", kind.span_name.encode("utf-8", "replace"))
    where = _INTERNAL if kind.is_frame else _CLIENT
    status = _ERROR if kind.is_failure else _NO_STATUS
    return b"".join([name, where, status, *attributes_of(kind.attributes())])


def attributes_of(found: Mapping[str, Any]) -> list[bytes]:
    """Return the encoded attributes of *found* that are not None."""
    written: list[bytes] = []
    for key, value in found.items():
        if value is not None:
            # By the exact class: bool is a subclass of int, and is another field.
            encode = _ENCODERS.get(value.__class__) or _encoder_of(value.__class__)
            written.append(encode(key, value))
    return written


@lru_cache(maxsize=_HELD)
def _known_text(key: str, value: str) -> bytes:
    return _attribute(key, _any_text(value))


def _text(key: str, value: str) -> bytes:
    if key not in _NEW_EACH_TIME and len(value) < _LONG:
        return _known_text(key, value)
    data = value.encode("utf-8", "replace")
    head = _head(key)
    size = len(data)
    whole = len(head) + size + 4
    if whole < 0x80:  # noqa: PLR2004 - so that all lengths fit into a byte
        return b"\x4a%c%b\x12%c\x0a%c%b" % (whole, head, size + 2, size, data)
    return _attribute(key, framed(b"\x0a", data))


def _any_text(value: str) -> bytes:
    # Replaced: protobuf takes no lone surrogates.
    return framed(b"\x0a", value.encode("utf-8", "replace"))


@lru_cache(maxsize=_HELD)
def _flag(key: str, value: bool) -> bytes:  # noqa: FBT001 - the value of an attribute
    return _attribute(key, b"\x10\x01" if value else b"\x10\x00")


@lru_cache(maxsize=_HELD)
def _integer(key: str, value: int) -> bytes:
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError("more than 64 bits")
    return _attribute(key, b"\x18" + varint(value))


def _double(key: str, value: float) -> bytes:
    return _double_head(key) + _DOUBLE(value)


@lru_cache(maxsize=_HELD)
def _double_head(key: str) -> bytes:
    # A double always takes eight bytes, so that all before them is the same each time.
    return _attribute(key, b"\x21" + bytes(8))[:-8]


def _texts(key: str, values: tuple[str, ...]) -> bytes:
    listed = b"".join(framed(b"\x0a", _any_text(each)) for each in values)
    return _attribute(key, framed(b"\x2a", listed))


@lru_cache(maxsize=_HELD)
def _head(key: str) -> bytes:
    return framed(b"\x0a", key.encode("utf-8", "replace"))


def _attribute(key: str, value: bytes) -> bytes:
    return framed(b"\x4a", _head(key) + framed(b"\x12", value))


_ENCODERS: dict[type[object], Callable[[str, Any], bytes]] = {
    bool: _flag,
    str: _text,
    int: _integer,
    float: _double,
    tuple: _texts,
}


def _encoder_of(kind: type[object]) -> Callable[[str, Any], bytes]:
    """Return the encoder of *kind*, a subclass of one of the types above."""
    for base, encoder in _ENCODERS.items():
        if issubclass(kind, base):
            return encoder
    raise TypeError("no attribute")
