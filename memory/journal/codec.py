"""
The codec of journalled arguments: JSON, with tags for what JSON would change.

A write that is made again must be the write that was asked for. So a tuple comes back as a tuple
and a number that is not one as itself, and a value of a type that is not known here is not kept at
all: guessing at it would write something else. Only classes that the adapter names are ever built.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, Protocol, TypeAlias

from ...telemetry.text import is_a

_TAG = "$"
_PLAIN: frozenset[type] = frozenset({str, int, float, bool, type(None)})
_NO_MODELS: Mapping[str, type[Any]] = {}

Built: TypeAlias = Callable[[Any], Any]


class UnkeepableError(Exception):
    """A value of this type cannot be kept. Names the type, never the value."""


class Array(Protocol):
    """The part of a numpy array that is used: numpy is not imported unless there is one."""

    dtype: Any

    def tolist(self) -> Any:
        """Return nested lists."""
        ...


class ArgumentCodec:
    """
    Turns arguments into text and back; refuses values that would not come back as they are.

    Args:
        models: Pydantic models, enums and named tuples that may be among them, by name.
    """

    def __init__(self, models: Mapping[str, type[Any]] = _NO_MODELS) -> None:
        self._models = models

    def text(self, value: Any) -> str:
        """
        Return *value* as JSON, in ASCII.

        Raises:
            UnkeepableError: There is something in it that would not come back as it is.
        """
        try:
            return json.dumps(self._plain(value), separators=(",", ":"))
        except RecursionError:
            raise UnkeepableError("a value is too deep, or holds itself") from None

    def value(self, text: str) -> Any:
        """
        Return what `text` was given.

        Raises:
            ValueError: It is not such a text, or names a class that is not known.
        """
        return self._built(json.loads(text))

    # -- to text -----------------------------------------------------------------------------------

    def _plain(self, value: Any) -> Any:
        kind = _kind(value)
        if kind in _PLAIN:
            return value
        if kind is list:
            return [self._plain(each) for each in value]
        if kind is dict:
            return self._plain_dict(value)
        if kind in _WRITERS:
            return {_TAG: kind.__name__, "v": _WRITERS[kind](value)}
        if kind in _CONTAINERS:
            return {_TAG: kind.__name__, "v": [self._plain(each) for each in value]}
        return self._plain_object(value, kind)

    def _plain_dict(self, value: dict[Any, Any]) -> Any:
        # A dictionary of the caller's may have our tag for a key: it is then written in pairs.
        if all(type(key) is str for key in value) and _TAG not in value:
            return {key: self._plain(each) for key, each in value.items()}
        pairs = [[self._plain(key), self._plain(each)] for key, each in value.items()]
        return {_TAG: "dict", "v": pairs}

    def _plain_object(self, value: Any, kind: type[Any]) -> Any:
        if kind.__module__ == "numpy":
            return self._plain_numpy(value)
        name = kind.__name__
        if self._models.get(name) is not kind:
            if isinstance(value, str) and not isinstance(value, Enum):
                return str.__str__(value)  # LangChain's messages have texts of a class of their own
            raise UnkeepableError(f"a {kind.__module__}.{kind.__qualname__} cannot be kept")
        if isinstance(value, Enum):
            return {_TAG: "enum", "n": name, "v": self._plain(value.value)}
        if issubclass(kind, tuple):
            return {_TAG: "model", "n": name, "v": self._plain_dict(value._asdict())}
        # By the names that its constructor takes, and only what was set: the store tells those
        # apart.
        fields = {_alias(kind, each): getattr(value, each) for each in value.model_fields_set}
        return {_TAG: "model", "n": name, "v": self._plain_dict(fields)}

    def _plain_numpy(self, value: Array) -> Any:
        if value.dtype.kind not in "biuf":
            raise UnkeepableError("an array of something else than numbers cannot be kept")
        return {_TAG: "numpy", "n": str(value.dtype), "v": value.tolist()}

    # -- and back ----------------------------------------------------------------------------------

    def _built(self, plain: Any) -> Any:
        if is_a(plain, list):
            return [self._built(each) for each in plain]
        if not is_a(plain, dict):
            return plain
        if _TAG not in plain:
            return {key: self._built(each) for key, each in plain.items()}
        return self._built_tagged(plain[_TAG], plain)

    def _built_tagged(self, tag: str, fields: dict[str, Any]) -> Any:
        kept = fields["v"]
        if tag in _READERS:
            return _READERS[tag](kept)
        if tag == "dict":
            return {self._built(key): self._built(each) for key, each in kept}
        if tag == "numpy":
            return _array(kept, fields["n"])
        built = self._built(kept)
        if tag in _BY_NAME:
            return _BY_NAME[tag](built)
        model = self._models.get(fields["n"])
        if model is None:
            raise ValueError("a kept value is of a class that is not known here")
        # Only classes that the adapter has named: a file must not choose what is called.
        return model(**built) if tag == "model" else model(built)


def _kind(value: object) -> type[Any]:
    return type(value)


def _alias(model: Any, field: str) -> str:
    declared = model.model_fields.get(field)  # an extra one has no other name
    return (declared and declared.alias) or field


def _array(numbers: Any, dtype: str) -> Any:
    import numpy as np  # noqa: PLC0415 - only where there is an array

    array = np.asarray(numbers, dtype=dtype)
    # A number of numpy's comes back as one, not as an array without dimensions.
    return array if array.ndim else array[()]


_WRITERS: Mapping[type, Callable[[Any], str]] = {
    bytes: lambda value: b64encode(value).decode(),
    dt.datetime: dt.datetime.isoformat,
    dt.date: dt.date.isoformat,
    dt.time: dt.time.isoformat,
    uuid.UUID: str,
    Decimal: str,
}
_READERS: Mapping[str, Built] = {
    "bytes": b64decode,
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "UUID": uuid.UUID,
    "Decimal": Decimal,
}
_CONTAINERS: frozenset[type] = frozenset({tuple, set, frozenset})
_BY_NAME: Mapping[str, Built] = {each.__name__: each for each in _CONTAINERS}
