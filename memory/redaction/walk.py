"""Walks a value to every text in it and builds the redacted value of the same shape and types."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import fractions
import ipaddress
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeAlias, cast

from ..errors import RedactionError

Rebuild: TypeAlias = Callable[[Any, Callable[[Any], Any]], Any]
"""Takes a value of some type and the walk for its parts, returns the redacted value."""

DEPTH_LIMIT = 64

_PASSING: frozenset[type] = frozenset(
    {
        type(None),
        bool,
        int,
        float,
        complex,
        decimal.Decimal,
        fractions.Fraction,
        dt.datetime,
        dt.date,
        dt.time,
        dt.timedelta,
        dt.timezone,
        uuid.UUID,
        range,
        type(...),
        type(NotImplemented),
    }
)
_NUMBERS = (int, float)
_NUMERIC_KINDS = frozenset("biufcmM")
_ABSENT = object()


class Walker:
    """
    Redacts values of any depth.

    Args:
        text: Redacts a string.
        key: Redacts a string that is a mapping's key.
        rebuild: By exact type, how to redact values that are not known here.
    """

    __slots__ = ("_open", "_rebuild", "key", "text")

    def __init__(
        self,
        *,
        text: Callable[[str], str],
        key: Callable[[str], str],
        rebuild: Mapping[type, Rebuild],
    ) -> None:
        self.text = text
        self.key = key
        self._rebuild = rebuild
        self._open: set[int] = set()

    def walk(self, value: Any) -> Any:
        """
        Return *value* redacted.

        Raises:
            RedactionError: It is of an unknown type, holds itself, or is too deep.
        """
        kind = _kind_of(value)
        if kind is str:
            return self.text(value)
        if kind in _PASSING:
            return value
        if kind is list and _is_numeric(value):
            return value
        return self._entered(value, kind)

    def mapping(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return a dict with *value*'s keys and values redacted."""
        result = {self._walked_key(key): self.walk(item) for key, item in value.items()}
        if len(result) != len(value):
            raise RedactionError("two keys of a mapping became one")
        return result

    def _walked_key(self, key: Any) -> Any:
        return self.key(key) if type(key) is str else self.walk(key)

    def _entered(self, value: Any, kind: Any) -> Any:
        """Walk what may hold other values, once it is sure that this ends."""
        if id(value) in self._open:
            raise RedactionError(f"a {kind.__qualname__} holds itself")
        if len(self._open) >= DEPTH_LIMIT:
            raise RedactionError(f"a value is deeper than {DEPTH_LIMIT}")
        self._open.add(id(value))
        try:
            return self._rebuilt(value, kind)
        finally:
            self._open.discard(id(value))

    def _rebuilt(self, value: Any, kind: Any) -> Any:
        if own := self._rebuild.get(kind):
            return own(value, self.walk)
        if kind is dict:
            return self.mapping(value)
        if kind is list:
            return [self.walk(item) for item in value]
        for types, rebuild in _BY_TYPE:
            if isinstance(value, types):
                return rebuild(value, self)
        return self._structured(value, kind)

    def _structured(self, value: Any, kind: Any) -> Any:
        if dataclasses.is_dataclass(kind):
            return _with_fields(value, (each.name for each in dataclasses.fields(kind)), self)
        if hasattr(kind, "model_fields") and hasattr(kind, "model_copy"):
            return _model(value, self)
        if kind.__module__.partition(".")[0] in {"numpy", "torch"} and _is_numeric_array(value):
            return value
        raise RedactionError(f"cannot redact a {kind.__module__}.{kind.__qualname__}")


def _kind_of(value: object) -> Any:
    return type(value)


def _unchanged(value: Any, _walker: Walker) -> Any:
    return value


def _string(value: str, walker: Walker) -> str:
    redacted = walker.text(str.__str__(value))
    return value if redacted == value else redacted


def _sequence(value: Any, walker: Walker) -> Any:
    kind = cast("Any", type(value))
    make = getattr(kind, "_make", kind)
    return make([walker.walk(item) for item in value])


def _mapping_of_kind(value: Any, walker: Walker) -> Any:
    walked = walker.mapping(value)
    result = copy(value)
    result.clear()
    result.update(walked)
    return result


def _list_of_kind(value: Any, walker: Walker) -> Any:
    result = copy(value)
    result[:] = [walker.walk(item) for item in value]
    return result


def _deque(value: deque[Any], walker: Walker) -> deque[Any]:
    return deque((walker.walk(item) for item in value), value.maxlen)


def _bytes(value: Any, walker: Walker) -> Any:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value
    redacted = walker.text(text)
    return value if redacted == text else type(value)(redacted.encode())


def _path(value: PurePath, walker: Walker) -> PurePath:
    redacted = walker.text(str(value))
    return value if redacted == str(value) else type(value)(redacted)


def _as_text(value: Any, walker: Walker) -> str:
    return walker.text(str(value))


def _with_fields(value: Any, names: Iterable[str], walker: Walker) -> Any:
    # Not dataclasses.replace: it runs the constructor again and refuses fields without init.
    before = {name: getattr(value, name, _ABSENT) for name in names}
    after = {name: walker.walk(item) for name, item in before.items() if item is not _ABSENT}
    if all(item is before[name] for name, item in after.items()):
        return value
    result = copy(value)
    for name, item in after.items():
        object.__setattr__(result, name, item)
    return result


def _model(value: Any, walker: Walker) -> Any:
    """Redact a pydantic model's fields and extras; its private attributes never leave it."""
    held: dict[str, Any] = {**value.__dict__, **(value.__pydantic_extra__ or {})}
    return value.model_copy(update={name: walker.walk(item) for name, item in held.items()})


_BY_TYPE: tuple[tuple[Any, Callable[[Any, Walker], Any]], ...] = (
    ((Enum, type, dt.tzinfo), _unchanged),
    (str, _string),
    ((tuple, set, frozenset), _sequence),
    (dict, _mapping_of_kind),
    (list, _list_of_kind),
    (deque, _deque),
    ((bytes, bytearray), _bytes),
    (PurePath, _path),
    (
        (
            ipaddress.IPv4Address,
            ipaddress.IPv6Address,
            ipaddress.IPv4Network,
            ipaddress.IPv6Network,
        ),
        _as_text,
    ),
    ((int, float, dt.date, dt.timedelta), _unchanged),
)


def _is_numeric(values: list[Any]) -> bool:
    """
    True for a list of plain numbers, at the cost of adding them up.

    A vector has 1,536 of them: looking at each one's type would cost more than the whole call.
    `sum` refuses whatever is not a number.
    """
    if not values or type(values[0]) not in _NUMBERS:
        return False
    try:
        return type(sum(values)) in _NUMBERS
    except Exception:  # noqa: BLE001 - not plain numbers: each is looked at
        return False


def _is_numeric_array(value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return kind in _NUMERIC_KINDS or type(value).__module__.startswith("torch")
