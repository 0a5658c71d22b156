"""The id of the memory store in the traces of mem0: its collection, or the hosted project."""

from __future__ import annotations

from typing import Any

from ...memory.api import Faces, Method
from ...memory.guard.call import Call
from ...telemetry.event.memory_store import MemoryStore
from ..toolkit.databases import result_or_none


def store_id(client: Any, *, hosted: bool) -> str | None:
    """Return the collection that a *client* of mem0 keeps memories in, or its hosted project."""
    found = result_or_none(
        lambda: client.project_id if hosted else client.vector_store.collection_name
    )
    return found if isinstance(found, str) and found else None


class StoreIdStep:
    """
    A step that adds the id of the memory store to each event.

    Args:
        named: The id, redacted.
    """

    def __init__(self, named: str) -> None:
        self._part = MemoryStore(named)

    def faces(self, _method: Method) -> Faces:
        """Return the step's face: the same in all calls."""
        return Faces(before=self._add)

    def _add(self, call: Call) -> None:
        call.additions += (self._of,)

    def _of(self, _store: str, _call: Call) -> MemoryStore:
        return self._part
