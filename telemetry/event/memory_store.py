"""The parts of an event about its store: which it is, and that nobody's data is in it."""

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


class NobodysData(EventPart, tag="nobodys", frozen=True):
    """
    The user's word that a store, or a part of it, holds nobody's data. Shown by the trail alone.

    It is with what is done there for nobody: help pages that are written, say.
    """

    def sealed(self) -> bool:
        """Return True."""
        return True
