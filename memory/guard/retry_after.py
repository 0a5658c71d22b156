"""How long a store asks to be left alone, as its client's exception tells it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from typing import Any, cast

LONGEST_S = 3_600.0
"""Seconds that are waited at most, whatever the store asks for."""

_MOST_CAUSES = 8
_NS = 1e9
_HEADER = "retry-after"
_ATTRIBUTES = ("retry_after_s", "retry_after")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?")


def retry_after_s(exc: BaseException, *, wall_ns: Callable[[], int] = time.time_ns) -> float | None:
    """
    Return the seconds after which the store wants to be asked again. None: it does not say.

    Found are Qdrant's ``retry_after_s``, the hosted mem0's ``debug_info``, the header
    ``Retry-After`` of a response in seconds or as a date, and gRPC's metadata of that name, in the
    exception or in what it was made from. Never raises.

    Args:
        exc: What a client raised.
        wall_ns: Nanoseconds since 1970 UTC, for dates.
    """
    try:
        said = (_seconds(each, wall_ns) for one in _causes(exc) for each in _values(one))
        return next((each for each in said if each is not None), None)
    except Exception:  # noqa: BLE001 - an exception's attributes may be anything, and raise
        return None


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """Yield *exc* and what it was made from: not every client says that by ``from``."""
    found: Any = exc
    for _ in range(_MOST_CAUSES):
        if not isinstance(found, BaseException):
            return
        yield found
        source = getattr(found, "source", None)  # Qdrant's
        context = None if found.__suppress_context__ else found.__context__
        found = source if isinstance(source, BaseException) else found.__cause__ or context


def _values(exc: Any) -> Iterator[Any]:
    yield from (getattr(exc, name, None) for name in _ATTRIBUTES)
    if callable(told := getattr(getattr(exc, "debug_info", None), "get", None)):
        yield told("retry_after")
    for holder in (getattr(exc, "response", None), exc):
        yield _header(getattr(holder, "headers", None))
    metadata = getattr(exc, "trailing_metadata", None)
    if callable(metadata):
        yield _header(dict(cast("Any", metadata() or ())))


def _header(headers: Any) -> Any:
    items = getattr(headers, "items", None)
    named = items() if callable(items) else ()
    return next((value for name, value in cast("Any", named) if _is_it(name)), None)


def _is_it(name: Any) -> bool:
    return isinstance(name, str) and name.lower() == _HEADER


def _seconds(value: Any, wall_ns: Callable[[], int]) -> float | None:
    if isinstance(value, str):
        text = value.strip()
        found = float(text) if _NUMBER.fullmatch(text) else _until(text, wall_ns)
    else:
        found = float(value) if isinstance(value, (int, float)) else None
    if found is None or isinstance(value, bool) or math.isnan(found) or found < 0:
        return None
    return min(found, LONGEST_S)


def _until(text: str, wall_ns: Callable[[], int]) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - wall_ns() / _NS)
    except Exception:  # noqa: BLE001 - whatever a server sends for a date
        return None
