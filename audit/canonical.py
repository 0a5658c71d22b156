"""
Canonical JSON: RFC 8785, without fractions.

What is hashed must come out as the same bytes wherever it is written again. Numbers with a fraction
are refused, since how they print is the hardest part of the RFC to get right elsewhere: whoever has
one writes it as a string, or in a smaller unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

_SCALARS = frozenset({str, int, bool, type(None)})
_OPTIONS = orjson.OPT_STRICT_INTEGER


def canonical(value: Any) -> bytes:
    """
    Return *value* as canonical JSON in UTF-8: strings, whole numbers, booleans, null, lists, dicts.

    Raises:
        TypeError: There is something else in it, subclasses of these included; or a number beyond
            53 bits, which readers that know doubles would misread; or a lone surrogate.
    """
    _check([value])
    text = orjson.dumps(value, option=_OPTIONS | orjson.OPT_SORT_KEYS)
    # By code points, as here, and by UTF-16, as the RFC says, differ beyond ASCII alone.
    return text if text.isascii() else orjson.dumps(_sorted(value), option=_OPTIONS)


def _check(values: Iterable[Any]) -> None:
    if _SCALARS.issuperset(map(type, values)):
        return
    for value in values:
        kind = value.__class__
        if kind is dict:
            _check(value.values())
        elif kind is list:
            _check(value)
        elif kind not in _SCALARS:
            raise TypeError(f"canonical JSON does not hold a {kind.__qualname__}")


def _sorted(value: Any) -> Any:
    kind = value.__class__
    if kind is dict:
        return {key: _sorted(each) for key, each in sorted(value.items(), key=_by_utf_16)}
    return [_sorted(each) for each in value] if kind is list else value


def _by_utf_16(item: tuple[str, Any]) -> bytes:
    return item[0].encode("utf-16-be")
