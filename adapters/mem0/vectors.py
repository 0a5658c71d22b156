"""The vector store below mem0: Qdrant page by page, any other by the verbs that mem0 has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...memory.subject_data.keeping import RecordCount
from ...telemetry.event.spelling import id_forms
from ..toolkit.proxy import guard_of, inner_of

if TYPE_CHECKING:
    from ...memory.guard.guard import Guard

_MOST = 1_000_000
"""The limit for a store that has no pages; some take no larger number."""

_ELSEWHERE = "{store} is not known to mnemoscope: whether its files keep what was deleted is unsaid"


class Vectors(Protocol):
    """
    One collection below mem0.

    Attributes:
        collection: Its name.
    """

    collection: str

    async def page(
        self, user: str | None, after: Any | None = None
    ) -> tuple[list[Any], Any | None]:
        """Return records of *user*, or of everybody, after *after*, and the next *after*."""
        ...

    async def measured(self, kind: str, most: int) -> RecordCount:
        """Return how much there is of everybody; *most* records at most are looked at."""
        ...

    async def dimensions(self) -> int | None:
        """Return the dimensions of its vectors. None: that cannot be told."""
        ...

    async def remove(self, user: str) -> int:
        """Remove all records of *user*, and return how many they were."""
        ...

    def clean(self) -> tuple[str, ...]:
        """Rewrite local files without deleted records; return notes for the person who asked."""
        ...

    def files(self) -> tuple[Path, ...]:
        """Return its files on this machine."""
        ...


async def records(vectors: Vectors, user: str) -> AsyncIterator[Any]:
    """Yield all records of *user*."""
    after: Any | None = None
    while True:
        found, after = await vectors.page(user, after)
        for record in found:
            yield record
        if after is None:
            return


def vectors_of(memory: Any, *, entities: bool) -> Vectors | None:
    """
    Return the collection of *memory*, or that of its entities. None: there is none.

    mem0 makes its collection of entities when it first meets one. Asking mem0 for it would make it.
    """
    store = memory.vector_store
    client = getattr(store, "client", None)
    if type(store).__module__.endswith(".qdrant") and client is not None:
        return _in_qdrant(inner_of(client) or client, store.collection_name, entities=entities)
    if entities:
        store = memory._entity_store  # noqa: SLF001 - the property makes a collection
    return None if store is None else _ListedVectors(store)


def guards_below(memory: Any) -> Mapping[Guard, frozenset[str]]:
    """Return the guard of the client that *memory* works in, if it has one, and its collections."""
    store = memory.vector_store
    guard = guard_of(getattr(store, "client", None))
    if guard is None:
        return {}
    name: str = store.collection_name
    return {guard: frozenset((name, _entities_of(name)))}


def _entities_of(collection: str) -> str:
    return f"{collection}_entities"


def _in_qdrant(client: Any, collection: str, *, entities: bool) -> Vectors | None:
    from .qdrant_vectors import QdrantVectors  # noqa: PLC0415 - loaded where mem0 has loaded Qdrant

    name = _entities_of(collection) if entities else collection
    return QdrantVectors(client, name) if client.collection_exists(name) else None


class _ListedVectors:
    """A store of any other kind, through the verbs that all of mem0's stores have."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.collection: str = getattr(store, "collection_name", "") or type(store).__name__

    async def page(
        self, user: str | None, after: Any | None = None
    ) -> tuple[list[Any], Any | None]:
        return ([] if after else self._all(user)), None

    async def measured(self, kind: str, most: int) -> RecordCount:
        # It has no count: what it lists, up to one more than that.
        rows = self._found(None, most + 1)
        return RecordCount(
            kind=kind,
            rows=len(rows),
            is_sampled=len(rows) > most,
            ids=tuple(str(each.id) for each in rows[:most]),
        )

    async def dimensions(self) -> int | None:
        return None

    def _all(self, user: str | None) -> list[Any]:
        if user is None:
            return list(self._found(None, _MOST))
        # An id that is a number may be stored as one, and a filter by text does not find it.
        found = {row.id: row for form in id_forms(user) for row in self._listed(form)}
        return list(found.values())

    def _listed(self, user: str | int) -> Any:
        return self._found({"user_id": user}, _MOST)

    def _found(self, filters: dict[str, Any] | None, most: int) -> Any:
        found: Any = self._store.list(filters=filters, top_k=most)
        return (found[0] if found and isinstance(found[0], list) else found) or ()

    async def remove(self, user: str) -> int:
        removed = 0
        # A store may list fewer than it has.
        while rows := self._all(user):
            for row in rows:
                self._store.delete(vector_id=row.id)
            removed += len(rows)
        return removed

    def clean(self) -> tuple[str, ...]:
        return (_ELSEWHERE.format(store=type(self._store).__name__),)

    def files(self) -> tuple[Path, ...]:
        return ()
