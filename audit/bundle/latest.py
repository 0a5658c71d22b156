"""Some memories of each store, for the first page, and the totals of all."""

from __future__ import annotations

from typing import Any

from .reading import readable

MEMORIES_SHOWN = 200


class Latest:
    """
    A bounded part of the memories that were added.

    Attributes:
        texts: The texts of some memories, by their ids.
        found: By store, the number of memories that the agent can recall.
        beside: By store, the number of records that it keeps beside them.
        n_unexplained: Memories of which the log does not know where they came from.
    """

    def __init__(self) -> None:
        self.memories: dict[str, list[dict[str, Any]]] = {}
        self.texts: dict[str, str] = {}
        self.found: dict[str, int] = {}
        self.beside: dict[str, int] = {}
        self.n_unexplained = 0

    def add(self, record: dict[str, Any]) -> None:
        """Add one record, as memories.jsonl has it."""
        store = record["store"]
        if record["is_current"] is False:
            self.beside[store] = self.beside.get(store, 0) + 1
            return
        self.found[store] = self.found.get(store, 0) + 1
        # Art. 15(1)(g) asks for the source of all of them, those beyond the page included.
        self.n_unexplained += record["origin"] is None
        shown = self.memories.setdefault(store, [])
        if len(shown) < MEMORIES_SHOWN:
            shown.append(record)
            self.texts[str(record["id"])] = readable(record["content"])
