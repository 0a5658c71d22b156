"""The newest events and some memories of each store, for the first page."""

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
    A bounded part of the events and memories that were added.

    An event that touches no memory, or is nested in another, is left out; consecutive checkpoints
    of one conversation are one entry.

    Attributes:
        events: The newest ones, oldest first, with how many *times* in a row.
        n_events: How many entries there were in all.
        left_out: How many events were not shown.
        accesses: The newest of those that were consultations.
        n_accesses: How many of these there were in all.
        memories: Memories by store.
        texts: The texts of some memories, by their ids.
        found: By store, the number of memories that the agent can recall.
        beside: By store, the number of records that it keeps beside them.
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
        """Add one event, as events.jsonl has it."""
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

    def add_memory(self, record: dict[str, Any]) -> None:
        """Add one memory, as memories.jsonl has it."""
        store = record["store"]
        if record["is_current"] is False:
            self.beside[store] = self.beside.get(store, 0) + 1
            return
        self.found[store] = self.found.get(store, 0) + 1
        shown = self.memories.setdefault(store, [])
        if len(shown) < MEMORIES_SHOWN:
            shown.append(record)
            self.texts[str(record["id"])] = readable(record["content"])


def _is_more_of(last: dict[str, Any], document: dict[str, Any]) -> bool:
    same = ("class", "store", "status", "run", "agent", "journal")
    return document["class"] == "checkpoint" and all(last[each] == document[each] for each in same)
