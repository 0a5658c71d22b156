"""Redaction of values: builds a redacted copy of the same shape and types, at any depth."""

from __future__ import annotations

import binascii
import dataclasses
import datetime as dt
import decimal
import fractions
import ipaddress
import re
import uuid
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import copy
from enum import Enum
from itertools import chain, repeat
from pathlib import PurePath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from ....telemetry.text import code_class
from ...errors import RedactionError

if TYPE_CHECKING:
    from .numbers import Number

Rebuild: TypeAlias = Callable[[Any, Callable[[Any], Any]], Any]
"""Function of a value and of the redaction for its parts; returns the redacted value."""

Labels: TypeAlias = "tuple[str | None, ...] | None"
"""The labels that keys of a mapping are: see `ValueTexts`."""

Format: TypeAlias = "Callable[[Any, ValueRedactor], Any]"
"""Function of a value and of the redactor that it was met by; returns the redacted value."""

Formats: TypeAlias = "Callable[[Any], Format | None]"
"""Function of a type; returns the format of its values, or None: they are as any others."""

DEPTH_LIMIT = 64

_WIDE = 64
"""From so many items on, all texts of a value are asked about together first."""

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
        dt.timedelta,
        uuid.UUID,
        range,
        type(...),
        type(NotImplemented),
    }
)
_type_of: Callable[[object], Any] = type
"""Unlike `type` itself, it leaves the parameters of what is generic open to type checkers."""

_CONTAINERS: frozenset[type] = frozenset({dict, list, tuple})
_NUMBERED: frozenset[type] = frozenset({int, float, decimal.Decimal})
_UNDER_LABEL = (str, bytes, bytearray, dict, list, tuple, set, frozenset, deque)
"""Types that the label outside goes on for: what has fields has labels of its own."""

_NUMBERS = (int, float)
_NUMERIC_KINDS = frozenset("biufcmM")
_TEXT_KINDS = frozenset("US")
_TENSORS = frozenset({"Tensor", "Parameter"})
_ABSENT = object()
_POINTER_BYTES = tuple.__itemsize__
_PRINTABLE = re.compile(rb"[\x20-\x7e]{12,}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{32,}={0,2}", re.ASCII)


class ValueTexts(Protocol):
    """The redaction of a call, to the redactor of its values."""

    def find_plain(self, texts: Iterator[str], /) -> Collection[str]:
        """Return those of the texts of a value that need no search, if there are very many."""
        ...

    def identifier(self, text: str, /) -> str:
        """Return an id redacted that stands where a format has one."""
        ...

    def field(self, text: str, label: str, /) -> str:
        """Return a string redacted that stands behind a label, as on a form."""
        ...

    def number(self, number: Number, label: str, /) -> Number | str:
        """Return a number as it is, or what replaces it if its label calls it personal."""
        ...

    def labels_of(self, keys: tuple[Any, ...], /) -> Labels:
        """
        Return the label that each of some keys of a mapping is, or nothing.

        None in place of a label: it is an operator, and its value stands behind the key outside.
        None: there is neither among the keys.
        """
        ...


class ValueRedactor:
    """
    Redactor of values at any depth.

    Args:
        text: Redacts a string.
        key: Redacts a string that is a mapping's key.
        texts: Does what only some values need.
        rebuild: Functions by exact type, for values of types that are not known here.
        formats: Finds formats. None: all values are content.
        content: Redacts what a format calls content. None: this one.
        objects: Look into objects of any class, attribute by attribute, rather than refuse them.
        keeps: Tells which values of a mapping stay as they are, by key and value. None: none do.
    """

    __slots__ = (
        *("_content", "_formats", "_is_wide", "_keeps", "_label", "_objects", "_rebuild", "_texts"),
        *("key", "open", "text"),
    )

    def __init__(
        self,
        *,
        text: Callable[[str], str],
        key: Callable[[str], str],
        texts: ValueTexts,
        rebuild: Mapping[type, Rebuild],
        formats: Formats | None = None,
        content: ValueRedactor | None = None,
        objects: bool = False,
        keeps: Callable[[Any, Any], bool] | None = None,
    ) -> None:
        self.text = text
        self.key = key
        self._texts = texts
        self._label = ""
        self._is_wide = False
        self._rebuild = rebuild
        self._formats = formats
        self._content = content
        self._objects = objects
        self._keeps = keeps
        self.open: set[int] = set() if content is None else content.open

    @property
    def content(self) -> ValueRedactor:
        """The redactor of what a format calls content."""
        return self if self._content is None else self._content

    def identifier(self, text: str) -> str:
        """Return an id redacted that stands where a format has one."""
        return self._texts.identifier(text)

    def redact(self, value: Any) -> Any:
        """
        Return *value* redacted.

        Raises:
            RedactionError: It is of an unknown type, contains itself, or is too deep.
        """
        if self._label:
            return self._redact_labelled(value, self._label)
        kind = _type_of(value)
        if kind is str:
            return self.text(value)
        if kind in _PASSING:
            return value
        if kind is list and _is_numeric(value):
            return value
        return self.inside(value, self._redact_by_type)

    def _redact_labelled(self, value: Any, label: str) -> Any:
        kind = _type_of(value)
        if kind is str:
            return self._texts.field(value, label)
        if kind in _PASSING:
            return self._texts.number(value, label) if kind in _NUMBERED else value
        if not issubclass(kind, _UNDER_LABEL):
            return self._behind("", value)
        return self.inside(value, self._redact_by_type)

    def labelled(self, text: str) -> str:
        """Return *text* redacted as what stands under the key outside, if that says anything."""
        return self._texts.field(text, self._label) if self._label else self.text(text)

    def redact_under(self, key: Any, value: Any) -> Any:
        """
        Return *value* redacted as what stands under *key*, which may say what it is.

        Its items stand under it as well, and what an operator of a filter compares with it.
        """
        labels = self._texts.labels_of((key,))
        return self._behind("" if labels is None else labels[0], value)

    def _behind(self, label: str | None, value: Any) -> Any:
        """Return *value* redacted as what stands behind *label*. None: the one outside."""
        before = self._label
        if label is None or label == before:
            return self.redact(value)
        self._label = label
        try:
            return self.redact(value)
        finally:
            self._label = before

    def mapping(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return a dict with *value*'s keys and values redacted."""
        keeps, labels = self._keeps, self._texts.labels_of(tuple(value))
        if keeps is None and labels is None and not self._label:
            text, key_of, redact = self.text, self.key, self.redact
            # Most mappings are of texts: a function less for each counts.
            result = {
                key_of(key) if type(key) is str else redact(key): text(item)
                if type(item) is str
                else redact(item)
                for key, item in value.items()
            }
        else:
            result = {}
            for label, (key, item) in zip(labels or repeat(""), value.items(), strict=False):
                if keeps is not None and keeps(key, item):
                    result[key] = item
                else:
                    result[self.redact_key(key)] = self._behind(label, item)
        if len(result) != len(value):
            raise RedactionError("two keys of a mapping became one after redaction")
        return result

    def inside(self, value: Any, redact: Callable[[Any, Any], Any]) -> Any:
        """Return *redact* of a value and its type, unless it contains itself or is too deep."""
        kind, held, own = _type_of(value), self.open, id(value)
        if own in held:
            raise RedactionError(f"a {_name(kind)} holds itself", kind=_name(kind))
        if len(held) >= DEPTH_LIMIT:
            raise RedactionError(f"a value is deeper than {DEPTH_LIMIT} levels", kind=_name(kind))
        held.add(own)
        try:
            return redact(value, kind)
        finally:
            held.discard(own)

    def attributes(self, held: Mapping[str, Any]) -> dict[str, Any]:
        """Return those attributes that can be redacted, redacted: the others are left out."""
        result: dict[str, Any] = {}
        for name, item in held.items():
            try:
                key = name if name.isidentifier() else self.key(name)
                result[key] = self.redact_under(name, item)
            except RedactionError:
                continue
        return result

    def redact_key(self, key: Any) -> Any:
        """Return a key of a mapping redacted."""
        return self.key(key) if type(key) is str else self.redact(key)

    def _redact_by_type(self, value: Any, kind: Any) -> Any:
        if kind in _CONTAINERS and len(value) >= _WIDE and not self._is_wide:
            return self._redact_wide(value, kind)
        try:
            if own := self._rebuild.get(kind):
                return own(value, self.redact)
            if self._formats is not None and (known := self._formats(kind)):
                return known(value, self)
            if kind is dict:
                return self.mapping(value)
            if kind is list:
                return [self.redact(item) for item in value]
            return self._redact_unusual(value, kind)
        except RedactionError:
            raise
        except Exception:  # noqa: BLE001 - of a class of the application's; it may quote the value
            refusal = _refusal(value)
        raise refusal

    def _redact_wide(self, value: Any, kind: Any) -> Any:
        """Redact a value that may hold very many texts: those that are plain are kept as one."""
        text, key = self.text, self.key
        if plain := self._texts.find_plain(_texts(value)):
            self.text, self.key = _unless(plain, text), _unless(plain, key)
        self._is_wide = True
        try:
            return self._redact_by_type(value, kind)
        finally:
            self.text, self.key, self._is_wide = text, key, False

    def _redact_unusual(self, value: Any, kind: Any) -> Any:
        for types, rebuild in _BY_TYPE:
            if isinstance(value, types):
                return rebuild(value, self)
        for holds, rebuild in _BY_TRAIT:
            if holds(kind):
                return rebuild(value, self)
        if self._objects and _has_only_attributes(kind):
            return _object(value, self)
        raise _refusal(value)


def is_binary(text: str, redact: Callable[[str], str]) -> bool:
    """Return whether *text* is base64 of bytes that are no text and hold none to be redacted."""
    if _BASE64.fullmatch(text) is None:
        return False
    bare = text.rstrip("=")
    try:
        held = b64decode(bare + "=" * (-len(bare) % 4), altchars=b"-_")
    except binascii.Error:
        return False
    return not _is_text(held) and _without_text(held, redact) == held


def _unless(plain: Collection[str], redact: Callable[[str], str]) -> Callable[[str], str]:
    """Return *redact*, but for what is *plain*."""
    return lambda text: text if text in plain else redact(text)


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the texts in a dict, list or tuple of such, at any depth."""
    items: Iterable[Any] = chain(value, value.values()) if _type_of(value) is dict else value
    for each in items:
        kind = _type_of(each)
        if kind is str:
            yield each
        elif kind in _CONTAINERS and depth < DEPTH_LIMIT:
            yield from _texts(each, depth + 1)


def _name(kind: type) -> str:
    kind = code_class(kind)
    return f"{kind.__module__}.{kind.__qualname__}"


def _refusal(value: object) -> RedactionError:
    name = _name(_type_of(value))
    return RedactionError(f"cannot redact a {name}", kind=name)


def _unchanged(value: Any, _redactor: ValueRedactor) -> Any:
    return value


def _unless_text(value: Any, text: str, redactor: ValueRedactor) -> Any:
    """Return *value*, which shows *text*, or refuse it."""
    if redactor.text(text) != text:
        raise _refusal(value)
    return value


def _string(value: str, redactor: ValueRedactor) -> str:
    # By no method of its class's: one may say of itself what it likes, that it is equal too.
    text = str.__str__(value)
    redacted = redactor.labelled(text)
    return value if redacted == text and not _has_more(value) else redacted


def _has_more(value: Any) -> bool:
    """Return whether an object of a subclass has attributes beside what it is."""
    return bool(getattr(value, "__dict__", None))


def _enum(value: Enum, redactor: ValueRedactor) -> Any:
    """Return a member, or what it stands for, redacted: classes of members can be made of data."""
    held = value.value
    redacted = redactor.redact(held)
    return value if _type_of(redacted) is _type_of(held) and redacted == held else redacted


def _sequence(value: Any, redactor: ValueRedactor) -> Any:
    kind = cast("Any", type(value))
    if make := getattr(kind, "_make", None):
        return make(map(redactor.redact_under, kind._fields, value))
    return kind([redactor.redact(item) for item in value])


def _mapping_of_kind(value: Any, redactor: ValueRedactor) -> Any:
    walked = redactor.mapping(value)
    result = copy(value)
    result.clear()
    result.update(walked)
    # A class of the application's may have kept what it was told to let go.
    held: dict[Any, Any] = dict(cast("Any", dict).items(result))
    if held != walked:
        return walked
    return _redact_attributes(result, redactor)


def _list_of_kind(value: Any, redactor: ValueRedactor) -> Any:
    walked, result = [redactor.redact(item) for item in value], copy(value)
    result[:] = walked
    if cast("Any", list).copy(result) != walked:
        return walked
    return _redact_attributes(result, redactor)


def _redact_attributes(copied: Any, redactor: ValueRedactor) -> Any:
    """Redact what the copy of an object of the application's has beside its items or fields."""
    if held := getattr(copied, "__dict__", None):
        walked = redactor.attributes(held)
        held.clear()
        held.update(walked)
    return copied


def _deque(value: deque[Any], redactor: ValueRedactor) -> deque[Any]:
    return deque((redactor.redact(item) for item in value), value.maxlen)


def _slice(value: slice, redactor: ValueRedactor) -> slice:
    parts = value.start, value.stop, value.step
    return slice(*map(redactor.redact, parts))


def _bytes(value: Any, redactor: ValueRedactor) -> Any:
    kind: Any = bytes if isinstance(value, bytes) else bytearray
    held = kind.__getitem__(value, slice(None))  # as in `_string`
    redacted = _without_text(held, redactor.labelled)
    return value if redacted == held and not _has_more(value) else kind(redacted)


def _without_text(held: Any, redact: Callable[[str], str]) -> bytes:
    """Return bytes that are text redacted; others keep their length, their texts blanked."""
    encodings = ("utf-8", "utf-16-le", "utf-16-be") if b"\0" in held else ("utf-8",)
    for encoding in encodings:
        try:
            text = held.decode(encoding)
        except UnicodeDecodeError:
            continue
        if (redacted := redact(text)) != text:
            return redacted.encode(encoding)
    if len(encodings) == 1 and _is_text(held):
        return bytes(held)
    return _PRINTABLE.sub(
        lambda run: run[0] if redact(t := run[0].decode()) == t else b"*" * len(run[0]), held
    )


def _is_text(held: Any) -> bool:
    try:
        held.decode()
    except UnicodeDecodeError:
        return False
    return True


def _path(value: PurePath, redactor: ValueRedactor) -> PurePath:
    text = PurePath.__str__(value)  # as in `_string`
    redacted = redactor.text(text)
    return value if redacted == text else type(value)(redacted)


def _pattern(value: re.Pattern[Any], redactor: ValueRedactor) -> re.Pattern[Any]:
    """Redact a regular expression by the text that it stands for, which becomes a literal one."""
    source = value.pattern if isinstance(value.pattern, str) else value.pattern.decode("latin-1")
    literal = re.sub(r"\\(\W)", r"\1", source)
    redacted = redactor.text(literal)
    if redacted == literal and redactor.text(source) == source:
        return value
    escaped = re.escape(redacted)
    return re.compile(escaped if isinstance(value.pattern, str) else escaped.encode(), value.flags)


def _time(value: dt.time, redactor: ValueRedactor) -> dt.time:
    if value.tzinfo is not None:
        redactor.redact(value.tzinfo)
    return value


def _zone(value: dt.tzinfo, redactor: ValueRedactor) -> Any:
    return _unless_text(value, f"{value} {value.tzname(None)}", redactor)


def _address(value: Any, redactor: ValueRedactor) -> Any:
    redacted = redactor.text(str(value))
    return value if redacted == str(value) else redacted


def _exception(value: BaseException, redactor: ValueRedactor) -> Any:
    """Return an error of the same type, or one that names the type, with redacted arguments."""
    kind, args = _type_of(value), tuple(redactor.redact(each) for each in value.args)
    try:
        # Not a copy: it would hold what the constructor took and does not show in its arguments.
        result = kind.__new__(kind, *args)
        result.args = args
        result.__dict__.update(redactor.attributes(value.__dict__))
    except Exception:  # noqa: BLE001 - constructors of exceptions take what they like
        return Exception(_name(kind), *args)
    return result


def _fields(value: Any, redactor: ValueRedactor) -> Any:
    return _copy_with_fields(value, (each.name for each in dataclasses.fields(value)), redactor)


def _attrs_fields(value: Any, redactor: ValueRedactor) -> Any:
    return _copy_with_fields(value, (each.name for each in value.__attrs_attrs__), redactor)


def _copy_with_fields(value: Any, names: Iterable[str], redactor: ValueRedactor) -> Any:
    # Not dataclasses.replace: it runs the constructor again and refuses fields without init.
    before = {name: getattr(value, name, _ABSENT) for name in names}
    under = redactor.redact_under
    after = {name: under(name, item) for name, item in before.items() if item is not _ABSENT}
    others = getattr(value, "__dict__", {}).keys() - before.keys()
    if not others and all(item is before[name] for name, item in after.items()):
        return value
    result = copy(value)
    if result is value:
        raise _refusal(value)
    if others:
        _redact_attributes(result, redactor)
    for name, item in after.items():
        object.__setattr__(result, name, item)
    return result


def _model(value: Any, redactor: ValueRedactor) -> Any:
    """Redact a pydantic model's fields, extras and private attributes."""
    held: dict[str, Any] = {**value.__dict__, **(value.__pydantic_extra__ or {})}
    return copy_model(
        value, {n: redactor.redact_under(n, each) for n, each in held.items()}, redactor
    )


def _model_v1(value: Any, redactor: ValueRedactor) -> Any:
    held = cast("dict[str, Any]", value.__dict__)
    return value.copy(update={n: redactor.redact_under(n, each) for n, each in held.items()})


def copy_model(value: Any, changed: Mapping[str, Any], redactor: ValueRedactor) -> Any:
    """Return a copy of a pydantic model with fields changed and private attributes redacted."""
    result = value.model_copy(update=changed)
    if private := getattr(value, "__pydantic_private__", None):
        object.__setattr__(result, "__pydantic_private__", redactor.attributes(private))
    return result


def _object(value: Any, redactor: ValueRedactor) -> Any:
    """Redact an object of the application's, attribute by attribute, without its constructor."""
    kind = _type_of(value)
    result = kind.__new__(kind) if kind is SimpleNamespace else object.__new__(kind)
    for name, item in getattr(value, "__dict__", {}).items():
        key = name if name.isidentifier() else redactor.key(name)
        result.__dict__[key] = redactor.redact_under(name, item)
    for name in _slots(kind):
        if (item := getattr(value, name, _ABSENT)) is not _ABSENT:
            object.__setattr__(result, name, redactor.redact_under(name, item))
    return result


def _slots(kind: Any) -> list[str]:
    found: list[str] = []
    for each in cast("tuple[type, ...]", kind.__mro__):
        slots: str | Iterable[str] = cast("Any", vars(each)).get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else slots
        for name in names:
            if name not in {"__dict__", "__weakref__"}:
                private = name.startswith("__") and not name.endswith("__")
                found.append(f"_{each.__name__.lstrip('_')}{name}" if private else name)
    return found


def _has_only_attributes(kind: Any) -> bool:
    """Return whether instances hold nothing but attributes: what is below Python is not seen."""
    pointers = len(_slots(kind)) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    size = object.__basicsize__ + _POINTER_BYTES * pointers
    return kind.__basicsize__ == size and not kind.__itemsize__


def _array(value: Any, redactor: ValueRedactor) -> Any:
    dtype, kind = getattr(value, "dtype", None), _type_of(value)
    if kind.__module__.startswith("torch") and kind.__name__ in _TENSORS:
        return value
    dtype_kind = getattr(dtype, "kind", None)
    if dtype_kind in _TEXT_KINDS:
        import numpy as np  # noqa: PLC0415 - it is there: the value is its own

        return np.array(redactor.redact(value.tolist()))
    if dtype is None or dtype_kind not in _NUMERIC_KINDS:
        raise _refusal(value)
    if dtype.itemsize == 1 and _without_text(held := value.tobytes(), redactor.text) != held:
        raise _refusal(value)
    return value


_BY_TYPE: tuple[tuple[Any, Callable[[Any, ValueRedactor], Any]], ...] = (
    (Enum, _enum),
    (type, _unchanged),
    (str, _string),
    ((tuple, set, frozenset), _sequence),
    (dict, _mapping_of_kind),
    (list, _list_of_kind),
    (deque, _deque),
    ((bytes, bytearray), _bytes),
    (BaseException, _exception),
    (PurePath, _path),
    (re.Pattern, _pattern),
    (slice, _slice),
    (dt.time, _time),
    (dt.tzinfo, _zone),
    (
        (
            ipaddress.IPv4Address,
            ipaddress.IPv6Address,
            ipaddress.IPv4Network,
            ipaddress.IPv6Network,
        ),
        _address,
    ),
    ((int, float, dt.date, dt.timedelta, decimal.Decimal, uuid.UUID), _unchanged),
)


_BY_TRAIT: tuple[tuple[Callable[[Any], bool], Callable[[Any, ValueRedactor], Any]], ...] = (
    (dataclasses.is_dataclass, _fields),
    (lambda kind: hasattr(kind, "__attrs_attrs__"), _attrs_fields),
    (lambda kind: hasattr(kind, "model_fields") and hasattr(kind, "model_copy"), _model),
    (lambda kind: hasattr(kind, "__fields__") and hasattr(kind, "construct"), _model_v1),
    (lambda kind: kind.__module__.partition(".")[0] in {"numpy", "torch"}, _array),
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
