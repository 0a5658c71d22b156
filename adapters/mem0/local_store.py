"""mem0 on a local Qdrant, which is not thread-safe: its calls take turns, mem0's own need not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...memory.guard.call import Call
from ...memory.guard.step import AsyncInvoke, Invoke
from ..qdrant.turns import CallLock, local_of, lock_of, taking_turns

_STORES = ("vector_store", "_entity_store", "_telemetry_vector_store")


class LocalTurns:
    """
    Has the clients of local stores inside a memory take turns.

    A turn is one call of the store: a model that is asked in the middle of an ``add`` keeps nobody
    waiting. Looked at before each call, since ``reset`` gives the memory other clients.

    Attributes:
        lock: The lock of the store that holds the memories.
    """

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        local = local_of(memory.vector_store.client)
        self.lock: CallLock | None = None if local is None else lock_of(local)
        self._take_turns()

    def wrap(self, _call: Call, invoke: Invoke) -> Invoke:
        """Return *invoke*: it is the store's client that changes."""
        self._take_turns()
        return invoke

    def awrap(self, _call: Call, invoke: AsyncInvoke) -> AsyncInvoke:
        """Return *invoke*, as `wrap` does."""
        self._take_turns()
        return invoke

    def _take_turns(self) -> None:
        # Looked at before each call: mem0 makes the store of entities when it first has one.
        for name in _STORES:
            store: Any = getattr(self._memory, name, None)
            client = getattr(store, "client", None)
            turned = taking_turns(client)
            if turned is not client:
                store.client = turned


def locals_of(memory: Any) -> Iterator[Any]:
    """Yield what the clients of local stores inside *memory* are built on."""
    for name in _STORES:
        client: Any = getattr(getattr(memory, name, None), "client", None)
        local = None if client is None else local_of(client)
        if local is not None:
            yield local
