"""
Marks of the facts that a verdict was made of, by which a fact that was changed since is named.

A mark is a checksum of one fact and its name. Whoever changes a fact can change its mark as well,
but not the leaf of the event in the audit trail: that something was changed is seen by the leaf,
and what by the marks.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any, NamedTuple
from zlib import crc32

import orjson

_MARK_BYTES = 4


class ChangedFacts(NamedTuple):
    """
    Facts that are not as they were sealed.

    Attributes:
        names: Of those that are others, or were not there.
        gone: How many are not there any more.
    """

    names: list[str]
    gone: int


def marks_of(facts: str, settings: str) -> str:
    """Return the marks of *facts*, JSON text, and of the *settings*. Empty: they are no facts."""
    try:
        marks = _marks(facts, settings)
    except (ValueError, AttributeError):
        return ""  # the event is sealed all the same
    return b64encode(b"".join(marks.values())).decode()


def changed_facts(facts: str, settings: str, marks: str) -> ChangedFacts:
    """
    Return what was changed since `marks_of` returned *marks*.

    Raises:
        ValueError: Facts or marks are no longer what can be read.
    """
    try:
        now, sealed = _marks(facts, settings), b64decode(marks, validate=True)
    except AttributeError:
        raise ValueError("these are no facts") from None
    before = {sealed[at : at + _MARK_BYTES] for at in range(0, len(sealed), _MARK_BYTES)}
    names = [name for name, mark in now.items() if mark not in before]
    return ChangedFacts(names, max(0, len(before - {*now.values()}) - len(names)))


def _marks(facts: str, settings: str) -> dict[str, bytes]:
    named = {"settings": settings.encode(), **dict(_parts(facts))}
    return {
        name: crc32(name.encode() + b"\0" + value).to_bytes(_MARK_BYTES, "big")
        for name, value in named.items()
    }


def _parts(facts: str) -> Iterator[tuple[str, bytes]]:
    """Yield each fact by its name: those that go by name, and the turns, one by one."""
    known: dict[str, Any] = orjson.loads(facts)
    for name, value in known.items():
        inner: Any = value
        if isinstance(value, dict):
            yield from ((f"{name} {part}", orjson.dumps(of)) for part, of in inner.items())
        elif isinstance(value, list):
            yield from ((f"{name} {n}", orjson.dumps(of)) for n, of in enumerate(inner, 1))
        else:
            yield name, orjson.dumps(value)
