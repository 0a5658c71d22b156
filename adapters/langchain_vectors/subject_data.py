"""The documents about a person, in vector stores that can list by metadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...memory.api import PAGE_SIZE
from ..chroma.subject_data import CollectionData
from ..toolkit.listed_records import ListedRecords
from ..toolkit.owned_records import VectorRow
from .documents import row_of

_UNKNOWN = "cannot tell: of this class of vector store nothing lists by metadata"
_VACUUM = (
    "PostgreSQL keeps deleted rows in its files: run `VACUUM FULL langchain_pg_embedding` and "
    "`CHECKPOINT`, which lock the table for a while, and mind the archives of its log"
)


class AnyVectorStore(ListedRecords):
    """
    The provider of a store that cannot list by metadata, as far as is known.

    Args:
        client: The bare store.
        key: Metadata key that holds the owner's id. None: no key does.
        public: Its documents are nobody's personal data.
    """

    store = "langchain.vectors"
    lists = False
    takes_functions = False
    shared = True

    def __init__(self, client: Any, key: str | None, *, public: bool) -> None:
        super().__init__(key, public=public, unknown=None if self.lists else _UNKNOWN)
        self._client = client

    def held(self: Any, ids: list[Any]) -> Iterable[VectorRow]:
        """Return the documents that a write or a deletion of *ids* would touch."""
        return map(row_of, self._client.get_by_ids(ids))

    def _remove(self, ids: list[str]) -> None:
        self._client.delete(ids)


class InMemory(AnyVectorStore):
    """The provider of an ``InMemoryVectorStore``."""

    lists = takes_functions = True
    shared = False

    def _listed(self, customer: str, offset: int) -> Iterable[VectorRow]:
        stored = [*self._client.store.items()]
        theirs = [own for own, each in stored if each["metadata"].get(self._key) == customer]
        return self.held(theirs[offset : offset + PAGE_SIZE])


class PGVector(AnyVectorStore):
    """The provider of a ``langchain_postgres.PGVector``, by its public session and tables."""

    lists = True
    left = (_VACUUM,)

    def _rows(self, condition: Any, offset: int = 0) -> list[VectorRow]:
        table = self._client.EmbeddingStore
        with self._client.session_maker() as session:
            rows = session.query(table).filter(condition).order_by(table.id)
            found = rows.limit(PAGE_SIZE).offset(offset)
            return [VectorRow(each.id, each.document, each.cmetadata) for each in found]

    def held(self, ids: list[Any]) -> Iterable[VectorRow]:
        """See `AnyVectorStore.held`: an id is of one document in all collections."""
        for first in range(0, len(ids), PAGE_SIZE):
            yield from self._rows(
                self._client.EmbeddingStore.id.in_(ids[first : first + PAGE_SIZE])
            )

    def _listed(self, customer: str, offset: int) -> list[VectorRow]:
        table = self._client.EmbeddingStore
        with self._client.session_maker() as session:
            here = table.collection_id == self._client.get_collection(session).uuid
        return self._rows(here & (table.cmetadata[self._key].astext == customer), offset)


class Chroma(CollectionData):
    """The provider of a ``langchain_chroma.Chroma``, embedded or a server's."""

    store = AnyVectorStore.store
    lists = True
    takes_functions = False
    held = AnyVectorStore.held

    def __init__(self, client: Any, key: str | None, *, public: bool) -> None:
        # The collection each time anew: it is another one after a reset.
        super().__init__(client._client, lambda: client._collection, key, public=public)  # noqa: SLF001 - no other
        self._client = client


_KINDS: dict[str, Any] = {
    "langchain_core.vectorstores.in_memory.InMemoryVectorStore": InMemory,
    "langchain_chroma.vectorstores.Chroma": Chroma,
    "langchain_postgres.vectorstores.PGVector": PGVector,
}


def provider_of(client: Any) -> Any:
    """Return the provider's class. The sessions of an asynchronous PGVector are of its loop."""
    names = (f"{each.__module__}.{each.__qualname__}" for each in type(client).__mro__)
    known = next((_KINDS[each] for each in names if each in _KINDS), AnyVectorStore)
    return AnyVectorStore if getattr(client, "async_mode", False) else known
