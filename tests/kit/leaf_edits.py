"""Edits of a value as LangGraph's serializer keeps it: of each part, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ormsgpack

_OPTION = ormsgpack.OPT_NON_STR_KEYS
_KEYWORDS, _MODELS = 2, {4, 5}
"""Kinds of objects that are made from a dict: a dataclass by its fields, a model by more."""


class _Extension(tuple[int, Any]):
    """An object: the number of its kind, and the class and values that it is made from."""

    __slots__ = ()


def edited(blob: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield where *blob* was edited, and what it is then: each leaf, and each list and dict."""
    for where, value in _edits(_taken_apart(blob)):
        yield where, _put_together(value)


def _taken_apart(blob: bytes) -> Any:
    def seen(code: int, data: bytes) -> _Extension:
        return _Extension((code, _taken_apart(data)))

    return ormsgpack.unpackb(blob, ext_hook=seen, option=_OPTION)


def _put_together(value: Any) -> bytes:
    def made(each: Any) -> ormsgpack.Ext:
        return ormsgpack.Ext(each[0], _put_together(each[1]))

    return ormsgpack.packb(value, default=made, option=_OPTION | ormsgpack.OPT_PASSTHROUGH_TUPLE)


def _edits(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, _Extension):
        yield from _of_object(*value)
    elif isinstance(value, dict):
        for name, its in value.items():
            yield from ((f".{name}{at}", {**value, name: new}) for at, new in _edits(its))
            yield f".{name} gone", {key: of for key, of in value.items() if key != name}
        yield " more", {**value, "added": "by hand"}
    elif isinstance(value, (list, tuple)):
        for at, its in enumerate(value):
            yield from (
                (f"[{at}]{where}", [*value[:at], new, *value[at + 1 :]])
                for where, new in _edits(its)
            )
        yield " longer", [*value, *(value[-1:] or [7])]
        if value:
            yield " shorter", [*value[:-1]]
    else:
        yield "", _other(value)


def _of_object(code: int, made_from: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(made_from, list) or len(made_from) < 3:
        yield from ((at, _Extension((code, new))) for at, new in _edits(made_from))
        return
    # Which class it is comes first. No serializer is bound to keep that.
    module, name, values, *rest = made_from
    for at, new in _edits(values):
        if code in _MODELS | {_KEYWORDS} and not isinstance(new, dict):
            continue
        yield f"<{name}>{at}", _Extension((code, [module, name, new, *rest]))


def _other(value: Any) -> Any:
    match value:
        case None:
            return "x"
        case bool():
            return not value
        case int() | float():
            return value + 1
        case bytes():
            return value + b"x"
        case _:
            return f"{value}x"
