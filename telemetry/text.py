"""Conversions to text that never fail: JSON of any value, and readable times."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import orjson

_DEPTH = 100
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What ends a line, moves a terminal's cursor, turns what follows around, or is no UTF-8."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in UTC, like all times here
_LARGEST = 2**63 - 1


def json_text(value: Any) -> str:
    """
    Return *value* as one line of JSON.

    What JSON cannot hold costs its own place, not the whole record: lone surrogates become ``?``,
    integers of more than 64 bits become text, other types the name of their type.
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return orjson.dumps(_plain(value, 0)).decode()


def clean_text(text: str) -> str:
    """Return *text* without lone surrogates, which no UTF-8 format takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """
    Return *text* with its control characters escaped: a name may not forge a line or a screen.

    Two names stay two: ``a<tab>1`` and ``a<newline>1`` are two memories in an answer, too.
    """
    return text if text.isprintable() else _CONTROLS.sub(_escaped, text)


def _escaped(control: re.Match[str]) -> str:
    return ascii(control[0])[1:-1]


def safe_lines(text: object) -> str:
    """Return a text of others without what turns, hides or overwrites the text around it."""
    return "\n".join(map(one_line, str(text).splitlines()))


def recorded_name(text: str) -> str:
    """Return a name or id as events have it: what a store has may hold more than a line."""
    return clean_text(one_line(text))


def code_class(kind: type) -> type:
    """
    Return *kind*, or the nearest class above it, if need be, that is found in code by its name.

    A class that a program makes as it runs may be called anything, somebody's address too. What a
    module or a function says ``class`` of has a name of code.
    """
    return next(each for each in kind.__mro__ if _is_of_code(each))


def _is_of_code(kind: type) -> bool:
    where: Any = kind.__module__  # a program may say anything there
    module = sys.modules.get(where) if isinstance(where, str) else None
    found: Any = module
    for name in kind.__qualname__.split("."):
        if name == _LOCALS:  # of a function, which cannot be looked into
            return kind.__qualname__.replace(_LOCALS, "f").replace(".", "").isidentifier()
        found = getattr(found, "__dict__", {}).get(name)
    return found is kind or kind is object


_LOCALS = "<locals>"


def utc_text(micros: int) -> str:
    """Return microseconds since 1970 as ISO 8601 in UTC, always with six decimals."""
    seconds, fraction = divmod(micros, 1_000_000)
    try:
        return f"{second_text(seconds)}.{fraction:06}Z"
    except OverflowError:
        return "9999-12-31T23:59:59.999999Z"


@lru_cache(maxsize=64)  # events that are told of together happened together
def second_text(seconds: int) -> str:
    """
    Return seconds since 1970 as ISO 8601 in UTC, without saying so.

    Raises:
        OverflowError: There is no such year.
    """
    # Sums have no limits of the platform's, as `fromtimestamp` has.
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST else str(value)
    if depth < _DEPTH:
        return _plain_container(value, depth + 1)
    return "<too deep>"


def _plain_container(value: Any, depth: int) -> Any:
    if is_a(value, Mapping):
        return _plain_pairs(value, depth)
    if is_a(value, list, tuple, set, frozenset):
        return _plain_items(value, depth)
    return f"<{code_class(value.__class__).__name__}>"


def _plain_pairs(pairs: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    return {_key(key): _plain(value, depth) for key, value in pairs.items()}


def _plain_items(items: Iterable[Any], depth: int) -> list[Any]:
    return [_plain(each, depth) for each in items]


def _key(key: Any) -> str:
    return clean_text(key) if isinstance(key, str) else json_text(key)


def is_a(value: Any, *kinds: type[Any]) -> bool:
    """Return ``isinstance``, which would narrow Any to containers of unknown for pyright."""
    return isinstance(value, kinds)
