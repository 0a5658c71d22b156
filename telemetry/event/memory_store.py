"""The part of an event that names the memory store of a client whose calls name none."""

from __future__ import annotations

from .part import EventPart


class MemoryStore(EventPart, tag="memory_store", frozen=True):
    """
    The memory store that a client is made for. Shown in traces alone.

    Attributes:
        id: The id of the store: the name of a collection, or the id of a project.
    """

    id: str

    def attributes(self) -> dict[str, str]:
        """Return the id, by the GenAI conventions."""
        return {"gen_ai.memory.store.id": self.id}
