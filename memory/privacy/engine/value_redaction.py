"""Redaction of values: builds a redacted copy of the same shape and types, at any depth."""

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

from ...errors import RedactionError

Rebuild: TypeAlias = Callable[[Any, Callable[[Any], Any]], Any]
"""Function of a value and of the redaction for its parts; returns the redacted value."""

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


class ValueRedactor:
    """
    Redactor of values at any depth.

    Args:
        text: Redacts a string.
        key: Redacts a string that is a mapping's key.
        rebuild: Functions by exact type, for values of types that are not known here.
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

    def redact(self, value: Any) -> Any:
        """
        Return *value* redacted.

        Raises:
            RedactionError: It is of an unknown type, contains itself, or is too deep.
        """
        kind = _type_of(value)
        if kind is str:
            return self.text(value)
        if kind in _PASSING:
            return value
        if kind is list and _is_numeric(value):
            return value
        return self._redact_nested(value, kind)

    def mapping(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return a dict with *value*'s keys and values redacted."""
        result = {self._redact_key(key): self.redact(item) for key, item in value.items()}
        if len(result) != len(value):
            raise RedactionError("two keys of a mapping became one after redaction")
        return result

    def _redact_key(self, key: Any) -> Any:
        return self.key(key) if type(key) is str else self.redact(key)

    def _redact_nested(self, value: Any, kind: Any) -> Any:
        """Redact a value that may hold others, unless it contains itself or is too deep."""
        if id(value) in self._open:
            raise RedactionError(f"a {kind.__qualname__} holds itself", kind=_name(kind))
        if len(self._open) >= DEPTH_LIMIT:
            raise RedactionError(f"a value is deeper than {DEPTH_LIMIT} levels", kind=_name(kind))
        self._open.add(id(value))
        try:
            return self._redact_by_type(value, kind)
        finally:
            self._open.discard(id(value))

    def _redact_by_type(self, value: Any, kind: Any) -> Any:
        if own := self._rebuild.get(kind):
            return own(value, self.redact)
        if kind is dict:
            return self.mapping(value)
        if kind is list:
            return [self.redact(item) for item in value]
        for types, rebuild in _BY_TYPE:
            if isinstance(value, types):
                return rebuild(value, self)
        return self._redact_fields(value, kind)

    def _redact_fields(self, value: Any, kind: Any) -> Any:
        if dataclasses.is_dataclass(kind):
            return _copy_with_fields(value, (each.name for each in dataclasses.fields(kind)), self)
        if hasattr(kind, "model_fields") and hasattr(kind, "model_copy"):
            return _model(value, self)
        if kind.__module__.partition(".")[0] in {"numpy", "torch"} and _is_numeric_array(value):
            return value
        name = _name(kind)
        raise RedactionError(f"cannot redact a {name}", kind=name)


def _type_of(value: object) -> Any:
    return type(value)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _unchanged(value: Any, _redactor: ValueRedactor) -> Any:
    return value


def _string(value: str, redactor: ValueRedactor) -> str:
    redacted = redactor.text(str.__str__(value))
    return value if redacted == value else redacted


def _sequence(value: Any, redactor: ValueRedactor) -> Any:
    kind = cast("Any", type(value))
    make = getattr(kind, "_make", kind)
    return make([redactor.redact(item) for item in value])


def _mapping_of_kind(value: Any, redactor: ValueRedactor) -> Any:
    walked = redactor.mapping(value)
    result = copy(value)
    result.clear()
    result.update(walked)
    return result


def _list_of_kind(value: Any, redactor: ValueRedactor) -> Any:
    result = copy(value)
    result[:] = [redactor.redact(item) for item in value]
    return result


def _deque(value: deque[Any], redactor: ValueRedactor) -> deque[Any]:
    return deque((redactor.redact(item) for item in value), value.maxlen)


def _bytes(value: Any, redactor: ValueRedactor) -> Any:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value
    redacted = redactor.text(text)
    return value if redacted == text else type(value)(redacted.encode())


def _path(value: PurePath, redactor: ValueRedactor) -> PurePath:
    redacted = redactor.text(str(value))
    return value if redacted == str(value) else type(value)(redacted)


def _as_text(value: Any, redactor: ValueRedactor) -> str:
    return redactor.text(str(value))


def _copy_with_fields(value: Any, names: Iterable[str], redactor: ValueRedactor) -> Any:
    # Not dataclasses.replace: it runs the constructor again and refuses fields without init.
    before = {name: getattr(value, name, _ABSENT) for name in names}
    after = {name: redactor.redact(item) for name, item in before.items() if item is not _ABSENT}
    if all(item is before[name] for name, item in after.items()):
        return value
    result = copy(value)
    for name, item in after.items():
        object.__setattr__(result, name, item)
    return result


def _model(value: Any, redactor: ValueRedactor) -> Any:
    """Redact a pydantic model's fields and extras; its private attributes never leave it."""
    held: dict[str, Any] = {**value.__dict__, **(value.__pydantic_extra__ or {})}
    return value.model_copy(update={name: redactor.redact(item) for name, item in held.items()})


_BY_TYPE: tuple[tuple[Any, Callable[[Any, ValueRedactor], Any]], ...] = (
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
    Return whether *values* are plain numbers, at the cost of adding them up.

    A vector has 1,536 of them: checking the type of each would cost more than the whole call.
    `sum` raises for everything that is not a number.
    """
    if not values or type(values[0]) not in _NUMBERS:
        return False
    try:
        return type(sum(values)) in _NUMBERS
    except Exception:  # noqa: BLE001 - not plain numbers: each is redacted by itself
        return False


def _is_numeric_array(value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return kind in _NUMERIC_KINDS or type(value).__module__.startswith("torch")
