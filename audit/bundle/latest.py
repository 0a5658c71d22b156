"""What the first page shows: the newest events, and some of what each store remembers."""

from __future__ import annotations

import json
from collections import deque
from typing import Any, cast

from .statements import RECALLS

EVENTS_SHOWN = 500
MEMORIES_SHOWN = 200
_LONGEST_CONTENT = 4_000


class Latest:
    """
    Keeps a bounded part of what it is shown.

    Attributes:
        events: The newest ones, oldest first.
        accesses: The newest of those that were consultations.
        memories: By store, what it was found to hold.
        texts: What some memories say, by their ids.
        beside: By store, how much more it keeps beside what the agent can recall.
        found: By store, how much the agent can recall there.
    """

    def __init__(self) -> None:
        self.events: deque[dict[str, Any]] = deque(maxlen=EVENTS_SHOWN)
        self.accesses: deque[dict[str, Any]] = deque(maxlen=EVENTS_SHOWN)
        self.memories: dict[str, list[dict[str, Any]]] = {}
        self.texts: dict[str, str] = {}
        self.found: dict[str, int] = {}
        self.beside: dict[str, int] = {}

    def add(self, document: dict[str, Any]) -> None:
        """Show it one event, as events.jsonl has it."""
        self.events.append(document)
        if document["class"] in RECALLS:
            self.accesses.append(document)

    def add_memory(self, thing: dict[str, Any]) -> None:
        """Show it one memory, as memories.jsonl has it."""
        store = thing["store"]
        if thing["is_current"] is False:
            self.beside[store] = self.beside.get(store, 0) + 1
            return
        self.found[store] = self.found.get(store, 0) + 1
        shown = self.memories.setdefault(store, [])
        if len(shown) < MEMORIES_SHOWN:
            shown.append(thing)
            self.texts[str(thing["id"])] = readable(thing["content"])


def readable(content: Any) -> str:
    """Return *content* for a person: its texts, without the machinery around them."""
    text = "\n".join(_texts(content))
    return text if len(text) <= _LONGEST_CONTENT else f"{text[:_LONGEST_CONTENT]}…"


_MACHINERY = frozenset({"id", "hash", "score", "user_id", "agent_id", "run_id", "type", "role"})
_PLAIN = frozenset({"content", "text", "memory", "data", "messages", "query"})
"""Keys that say nothing that their text does not."""


def _texts(content: Any) -> list[str]:
    if isinstance(content, list):
        items = cast("list[Any]", content)
        return [text for each in items for text in _texts(each)]
    if isinstance(content, dict):
        pairs = cast("dict[str, Any]", content)
        return [line for key, value in pairs.items() for line in _pair(key, value)]
    return [] if content is None else [content if isinstance(content, str) else json.dumps(content)]


def _pair(key: str, value: Any) -> list[str]:
    texts = _texts(value)
    if not isinstance(value, (dict, list)):
        texts = [text for text in texts if key not in _MACHINERY]
    if len(texts) == 1 and not isinstance(value, (dict, list)) and key not in _PLAIN:
        return [f"{key}: {texts[0]}"]
    return texts
