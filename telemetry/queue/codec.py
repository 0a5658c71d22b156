"""
The bytes of one event, as a process appends it and another reads it.

An event is an array of its fields, by position; each file names the fields in their order, so that
processes of different releases understand one another. People are in it encrypted (see
`Subject.enclosed`), content as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final, cast

import msgspec
import orjson
from msgspec.structs import FieldInfo, astuple

from ..event.budget_event import BudgetEvent
from ..event.event import Event, Redacted
from ..event.memory_label import MemoryLabel
from ..event.node_run import NodeRun
from ..event.part import EventPart, UnknownPart
from ..event.parts import ANY_PART, carried
from ..event.phase import OperationPhases
from ..event.spared import Spared
from ..event.subject import SubjectKeys
from ..event.tool_run import ToolRun
from ..event.trace_ref import TraceRef
from ..event.usage import Usage
from ..event.verdict_event import VerdictEvent
from ..text import clean_text, code_class, json_text

FIELDS: tuple[str, ...] = Event.__struct_fields__
"""The fields of an event, in the order of this release."""

MakeContent = Callable[[Any], Redacted]
"""Returns JSON types that were redacted content as such: `memory.privacy` alone makes it."""

_TRACE, _SUBJECT, _PARTS = map(FIELDS.index, ("trace", "subject", "parts"))
_CONTENTS = tuple(map(FIELDS.index, ("content", "answer", "given")))
_LARGEST = 2**64 - 1
"""As the id of a span may be."""
_OTHERWISE: dict[str, Any] = {
    "trace": tuple[bytes, int, int | None, bool, bool],
    "subject": bytes | None,
    "content": bytes | None,
    "answer": bytes | None,
    "given": bytes | None,
    "parts": tuple[ANY_PART, ...],
}
"""The types of the fields that are written in another form."""


def _plain(value: Any) -> Any:
    """Return *value*, of a type that cannot be written, as a number or the name of its type."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return f"[{code_class(value.__class__).__qualname__}]"


_encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
_decode_any = msgspec.msgpack.Decoder(list[Any]).decode


class _Columns:
    """
    The fields of an event as they are read.

    Made by whoever reads first: an application that only writes events has no need of them, and
    they would take 3 ms of its start.

    Attributes:
        defaults: By name; a function makes one. `msgspec.NODEFAULT`: there is none.
        decode_row: Reads an event that was written with the fields of this release.
    """

    def __init__(self) -> None:
        columns = msgspec.structs.fields(Event)
        self.types = {each.name: _OTHERWISE.get(each.name, each.type) for each in columns}
        self.defaults = {
            each.name: each.default
            if each.default is not msgspec.NODEFAULT
            else each.default_factory
            for each in columns
        }
        row = msgspec.defstruct("_Row", [*map(self._column, columns)], array_like=True)
        self.decode_row: Callable[[bytes], msgspec.Struct] = msgspec.msgpack.Decoder(row).decode

    def _column(self, field: FieldInfo) -> tuple[str, Any] | tuple[str, Any, Any]:
        kind = self.types[field.name]
        if field.default_factory is not msgspec.NODEFAULT:
            return field.name, kind, msgspec.field(default_factory=field.default_factory)
        if field.default is not msgspec.NODEFAULT:
            return field.name, kind, field.default
        return field.name, kind


_columns = cache(_Columns)


def encode(event: Event) -> bytes:
    """Return *event* as bytes. What they cannot hold costs its own place, not the event."""
    values = [*astuple(event)]
    trace: TraceRef = values[_TRACE]
    values[_TRACE] = (
        # 128 bits: MessagePack has no such number.
        trace.trace_id.to_bytes(16, "big"),
        trace.span_id,
        trace.parent_span_id,
        trace.sampled,
        trace.parent_is_remote,
    )
    if event.subject is not None:
        values[_SUBJECT] = event.subject.enclosed()
    if event.parts:
        values[_PARTS] = [*map(carried, event.parts)]
    for place in _CONTENTS:
        if values[place] is not None:
            values[place] = _json(values[place].value)
    try:
        return _encode(values)
    except (UnicodeEncodeError, OverflowError):
        # Cleaned only after a failure, since it visits every value of the event.
        return _encode(_cleaned(values))


class EventDecoder:
    """
    Reads events of one file.

    Args:
        fields: The fields of its events, in their order.
        keys: What the people in it are encrypted with.
        content: Makes the content of what was content.
    """

    def __init__(
        self,
        fields: Sequence[str],
        keys: SubjectKeys,
        current: SubjectKeys,
        content: MakeContent,
    ) -> None:
        self._fields = tuple(fields)
        self._keys = keys
        self._current = current
        self._content = content
        self._decode_row = _columns().decode_row

    def decode(self, data: bytes) -> Event:
        """
        Return the event that was written as *data*.

        Raises:
            ValueError: It is none.
        """
        values = self._values(data)
        trace_id, span_id, parent_id, sampled, is_remote = values[_TRACE]
        values[_TRACE] = TraceRef(
            int.from_bytes(trace_id, "big"), span_id, parent_id, sampled, is_remote
        )
        if values[_SUBJECT] is not None:
            values[_SUBJECT] = self._keys.opened(values[_SUBJECT], self._current)
        for place in _CONTENTS:
            if values[place] is not None:
                values[place] = self._content(orjson.loads(values[place]))
        return Event(*values)

    def _values(self, data: bytes) -> list[Any]:
        # By the names that stand in the file: a relay may be older or newer than who wrote it.
        if self._fields == FIELDS:
            try:
                return [*astuple(self._decode_row(data))]
            except msgspec.ValidationError:
                pass  # one field of it is at fault, or of another type
        found = dict(zip(self._fields, _decode_any(data), strict=False))
        values = [_converted(name, found) for name in FIELDS]
        values[_PARTS] = _parts(found)
        return values


def _converted(name: str, found: dict[str, Any]) -> Any:
    """Return a field as an event has it; where it is missing or unfit, its default."""
    if name in found:
        try:
            return msgspec.convert(found[name], _columns().types[name], strict=False)
        except msgspec.ValidationError:
            pass
    default = _columns().defaults[name]
    if default is msgspec.NODEFAULT:
        raise ValueError(f"an event has no {name}")
    return default() if isinstance(default, type) or callable(default) else default


_FIELDS_BEFORE: Final[dict[type[EventPart], str | None]] = {
    BudgetEvent: "budget_event",
    MemoryLabel: "label",
    NodeRun: None,
    OperationPhases: None,
    Spared: None,
    ToolRun: "tool_call",
    Usage: "usage",
    VerdictEvent: "verdict",
}
"""The fields that parts were in releases without parts. None: as many as the part has."""


def _parts(found: dict[str, Any]) -> tuple[EventPart, ...]:
    """Return the parts of an event one by one, those that cannot be read as they are."""
    parts: Any = found.get("parts")
    return (
        *(_part(each, ANY_PART) for each in (parts if parts.__class__ is list else ())),
        *(_part(fields, kind) for kind, fields in _earlier(found)),
    )


def _part(encoded: Any, kind: Any) -> EventPart:
    try:
        return cast("EventPart", msgspec.convert(encoded, kind, strict=False))
    except msgspec.ValidationError:
        return UnknownPart(encoded)


def _earlier(found: dict[str, Any]) -> Iterator[tuple[type[EventPart], dict[str, Any]]]:
    """Yield the parts of an event that stand in fields of an earlier release."""
    for kind, name in _FIELDS_BEFORE.items():
        names = kind.__struct_fields__
        value: Any = found if name is None else found.get(name)
        if value.__class__ is list:
            value = dict(zip(names, value, strict=False))
        if value.__class__ is dict:
            known = {each: value[each] for each in names if value.get(each) is not None}
            if any(each != [] for each in known.values()):
                yield kind, known


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        return json_text(value).encode()


def _cleaned(value: Any) -> Any:
    """Return *value* with what the format does not take replaced, at any depth."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return min(max(value, -(2**63)), _LARGEST)
    kind = value.__class__
    if kind is dict:
        pairs = cast("dict[Any, Any]", value).items()
        return {_cleaned(name): _cleaned(each) for name, each in pairs}
    if kind in {list, tuple}:
        return [_cleaned(each) for each in cast("Sequence[Any]", value)]
    if value is None or isinstance(value, bool | float | bytes):
        return value
    return _cleaned(msgspec.to_builtins(value, enc_hook=_plain))
