"""What the first page shows: the newest events, and some of what each store remembers."""

from __future__ import annotations

from collections import deque
from typing import Any

from .reading import readable
from .statements import RECALLS
from .summary import MODEL

EVENTS_SHOWN = 500
MEMORIES_SHOWN = 200


class Latest:
    """
    Keeps a bounded part of what it is shown.

    What touches no memory, and what is a part of something that is shown, is left out; a row of
    saved states of one conversation is one entry.

    Attributes:
        events: The newest ones, oldest first, with how many *times* in a row.
        n_events: How many entries there were in all.
        left_out: How many events were not shown.
        accesses: The newest of those that were consultations.
        n_accesses: How many of these there were in all.
        memories: By store, what it was found to hold.
        texts: What some memories say, by their ids.
        found: By store, how much the agent can recall there.
        beside: By store, how much more it keeps beside that.
    """

    def __init__(self) -> None:
        self.events: deque[dict[str, Any]] = deque(maxlen=EVENTS_SHOWN)
        self.accesses: deque[dict[str, Any]] = deque(maxlen=EVENTS_SHOWN)
        self.n_events = self.n_accesses = self.left_out = 0
        self.memories: dict[str, list[dict[str, Any]]] = {}
        self.texts: dict[str, str] = {}
        self.found: dict[str, int] = {}
        self.beside: dict[str, int] = {}

    def add(self, document: dict[str, Any]) -> None:
        """Show it one event, as events.jsonl has it."""
        if document["nested"] or (document["class"] == MODEL and not document["usage"]):
            self.left_out += 1
            return
        if document["class"] in RECALLS:
            self.n_accesses += 1
            self.accesses.append(document)
        last = self.events[-1] if self.events else None
        if last is not None and _is_more_of(last, document):
            last["times"] += 1
            return
        self.n_events += 1
        self.events.append({**document, "times": 1})

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


def _is_more_of(last: dict[str, Any], document: dict[str, Any]) -> bool:
    same = ("class", "store", "status", "run", "agent", "journal")
    return document["class"] == "checkpoint" and all(last[each] == document[each] for each in same)
