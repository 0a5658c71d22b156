"""The words in what an event kept of a call, for people to read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .sentinels import is_of, texts

_SAID = ("messages", "content", "query", "value", "text", "data", "points", "payload")
"""Where adapters put what was said; other fields say how."""


def text_of(content: str | None) -> str:
    """Return the words of a memory or question, whose content the trail keeps as JSON."""
    return in_words(json.loads(content)) if content else ""


def in_words(known: Any) -> str:
    """Return the words in what JSON can say: those that were said, or where there are none all."""
    said = " ".join(_words(known))
    return said or " ".join(" ".join(each.split()) for each in texts(known))


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield " ".join(value.split())
    elif is_of(value, list):
        for each in value:
            yield from _words(each)
    elif is_of(value, dict):
        for name in _SAID:
            yield from _words(value.get(name))
