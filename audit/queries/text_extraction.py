"""The text of an event's content, for people to read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...telemetry.text import is_a

_NAMES = frozenset({"key", "role", "type", "event", "collection", "collection_name", "namespace"})
"""Fields that say what a thing is called, not what it is: others may be called the same."""

_SAID = ("messages", "content", "query", "value", "text", "data", "points", "payload")
"""Where adapters put what was said; other fields say how."""


def text_of(content: str | None) -> str:
    """Return the words of a memory or question, whose content the trail keeps as JSON."""
    return in_words(json.loads(content)) if content else ""


def in_words(known: Any) -> str:
    """Return the spoken words in a JSON value, or all of its texts if nothing is spoken."""
    said = " ".join(_words(known))
    # An adapter of other people's may call what was said by another name.
    return said or " ".join(" ".join(each.split()) for each in texts(known))


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield " ".join(value.split())
    elif is_a(value, list):
        for each in value:
            yield from _words(each)
    elif is_a(value, dict):
        for name in _SAID:
            yield from _words(value.get(name))


_PARTS = ("points", "messages", "memories")
"""Where a write of many has a part for each."""


def part_of(content: Any, memory_id: str, place: int, of: int) -> Any:
    """Return what a write of so many memories says of the one at *place*: its part, or all."""
    if of == 1 or not is_a(content, dict):
        return content
    lists = [content[name] for name in _PARTS if is_a(content.get(name), list)]
    for each in lists:
        named = [part for part in each if _id_of(part) == memory_id]
        # By id where parts have one; otherwise by place, if the list is of the same length as the
        # ids.
        if named or len(each) == of:
            return named[0] if named else each[place]
    return content


def _id_of(part: Any) -> str | None:
    found = part.get("id") if is_a(part, dict) else None
    return None if found is None else str(found)


def texts(content: Any) -> Iterator[str]:
    """Yield the texts in what JSON can say, but for names: of fields, and of whatever they name."""
    if isinstance(content, str):
        yield content
    elif is_a(content, dict):
        for name, each in content.items():
            if name not in _NAMES:
                yield from texts(each)
    elif is_a(content, list, tuple):
        for each in content:
            yield from texts(each)
