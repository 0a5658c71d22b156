"""
Content for sinks: redacted values as JSON types, bounded in depth and size.

A failure in here gives ``[REDACTED:error]``: a sink gets less, never more.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

from ....telemetry.event.event import Redacted
from ....telemetry.text import code_class

FAILED = "[REDACTED:error]"
TRUNCATED = "[TRUNCATED]"
DEPTH_LIMIT = 32
SIZE_LIMIT = 65_536
"""Characters of all texts together; every other value counts as eight."""

_VALUE_SIZE = 8
_LARGEST_INT = 2**63
_CONVERTED_BY_STR = (
    dt.date,
    dt.time,
    dt.timedelta,
    uuid.UUID,
    decimal.Decimal,
    PurePath,
)


def to_content(value: Any, *, most_chars: int = SIZE_LIMIT) -> Redacted:
    """Return *value*, which is redacted already, as JSON types; cut at *most_chars*."""
    if value == {} and type(value) is dict:
        return _EMPTY  # a search by vector, for example
    converter = _BoundedConverter(most_chars)
    try:
        return Redacted(converter.convert(value, 0), most_chars - converter.left)
    except Exception:  # noqa: BLE001 - fails closed: less, never more
        return Redacted(FAILED)


_EMPTY = Redacted({}, _VALUE_SIZE)


def content_again(value: Any) -> Redacted:
    """Return *value*, which was the content of an event and comes from a file of ours, as such."""
    return Redacted(value)


class _BoundedConverter:
    """
    Converter of one value to JSON types.

    Args:
        most_chars: Where it is cut, counted as `SIZE_LIMIT` is.

    Attributes:
        left: Characters that may still be added.
    """

    def __init__(self, most_chars: int) -> None:
        self.left = most_chars

    def convert(self, value: Any, depth: int) -> Any:
        """Return *value* as JSON types, truncated where the limit is reached."""
        if self.left <= 0 or depth > DEPTH_LIMIT:
            return TRUNCATED
        self.left -= _VALUE_SIZE
        kind = _type(value)
        if kind is str:
            return self._text(value)
        if kind is dict:
            return self._mapping(value, depth)
        if kind is list:
            return self._items(value, depth)
        if kind is int:
            return _number(value)
        return self._unusual(value, depth)

    def _unusual(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value.value if isinstance(value, Enum) else value)
        if value is None or isinstance(value, (bool, int, float)):
            return _number(value)
        if isinstance(value, Mapping):
            return self._mapping(_any(value), depth)
        if isinstance(value, (list, tuple, set, frozenset)):
            return self._items(_any(value), depth)
        return self._other(value, depth)

    def _text(self, text: str) -> str:
        kept = text if len(text) <= self.left else text[: max(0, self.left)] + TRUNCATED
        self.left -= len(text)
        return kept if kept.isascii() else kept.encode("utf-8", "replace").decode()

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, item in value.items():
            if self.left <= 0:
                result[TRUNCATED] = len(value) - len(result)
                break
            name = self._text(key) if isinstance(key, str) else _name(key)
            if (
                type(item) is str
                and item.isascii()
                and self.left > len(item) + _VALUE_SIZE
                and depth < DEPTH_LIMIT
            ):
                self.left -= len(item) + _VALUE_SIZE  # as `convert`, which is called less often
                result[name] = item
            elif item == {} and type(item) is dict and self.left > 0 and depth < DEPTH_LIMIT:
                self.left -= _VALUE_SIZE  # likewise: filters that name a customer alone
                result[name] = {}
            else:
                result[name] = self.convert(item, depth + 1)
        return result

    def _items(self, value: Iterable[Any], depth: int) -> list[Any]:
        result: list[Any] = []
        for item in value:
            result.append(self.convert(item, depth + 1))
            if self.left <= 0:
                result.append(TRUNCATED)
                break
        return result

    def _other(self, value: Any, depth: int) -> Any:
        if isinstance(value, Enum):
            return self.convert(value.value, depth + 1)
        if isinstance(value, _CONVERTED_BY_STR):
            return self._text(str(value))
        if _is_model(value):
            held: dict[str, Any] = _any(value).__dict__
            return self._mapping(held, depth)
        return _name(value)


def _number(value: float | None) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not -_LARGEST_INT <= value < _LARGEST_INT:
        return "[int]"
    return value.value if isinstance(value, Enum) else value


def _name(value: Any) -> str:
    if value is None or isinstance(value, (bool, int)):
        return str(value)
    return f"[{code_class(value.__class__).__qualname__}]"


def _is_model(value: object) -> bool:
    return hasattr(type(value), "model_fields")


_type: Callable[[Any], Any] = type


def _any(value: Any) -> Any:
    """Return *value* as Any: `isinstance` leaves the items of a container unknown."""
    return value
