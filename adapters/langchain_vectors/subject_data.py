"""The documents about a person, in vector stores that can list by metadata."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from ...memory.api import PAGE_SIZE, DataSubject, Erased, Page, SubjectRecord

_THEIRS = "SELECT id FROM embeddings_queue WHERE topic LIKE ? AND json_extract(metadata, ?) = ?"
_QUEUE = f"UPDATE embeddings_queue SET metadata = NULL WHERE topic LIKE ? AND id IN ({_THEIRS})"  # noqa: S608 - two constants
_WORDS = "INSERT INTO embedding_fulltext_search(embedding_fulltext_search) VALUES ('optimize')"
_UNKNOWN = "cannot tell: of this class of vector store nothing lists by metadata"
_UNTOLD = "wrapped without owner_key: no document says whose it is"
_VACUUM = (
    "PostgreSQL keeps deleted rows in its files: run `VACUUM FULL langchain_pg_embedding` and "
    "`CHECKPOINT`, which lock the table for a while, and mind the archives of its log"
)
# Its files are written with memory that nothing has set: texts were seen in them.
_INDEX = (
    "Chroma keeps ids of deleted documents in its queue, and their vectors in its index files, "
    "which may have pieces of its memory in them, texts too: copy the collection to a new folder"
)


class AnyVectorStore:
    """
    The provider of a store that cannot list by metadata, as far as is known.

    Args:
        client: The bare store.
        key: Metadata key that holds the owner's id. None: no key does.
        public: Its documents are nobody's personal data.
    """

    store = "langchain.vectors"
    title = "Documents about you"
    lists = False
    takes_functions = False
    shared = True

    def __init__(self, client: Any, key: str | None, *, public: bool) -> None:
        self._client, self._key = client, key
        untold = _UNTOLD if key is None else None
        self.unavailable = None if public else untold if self.lists else _UNKNOWN

    def held(self, ids: list[Any]) -> Iterable[Document]:
        """Return the documents that a write or a deletion of *ids* would touch."""
        found: list[Document] = self._client.get_by_ids(ids)
        return found

    def _listed(self, _customer: str, _offset: int) -> list[Document]:
        return []

    def _clean(self, _customer: str) -> tuple[str, ...]:
        return ()

    async def page(self, subject: DataSubject, after: Any | None = None) -> Page:
        """Return documents of *subject*, as they are stored."""
        offset = after or 0
        listed = [] if self._key is None else self._listed(subject.customer, offset)
        records = [
            SubjectRecord(
                kind="memory",
                id=str(each.id),
                content={"text": each.page_content, "metadata": each.metadata},
            )
            for each in listed
        ]
        return Page(tuple(records), offset + PAGE_SIZE if len(records) == PAGE_SIZE else None)

    async def erase(self, subject: DataSubject) -> Erased:
        """Delete the documents of *subject*, from files on this machine too."""
        removed = 0
        while found := (await self.page(subject)).records:
            self._client.delete([each.id for each in found])
            removed += len(found)
        return Erased(removed, messages=self._clean(subject.customer))

    async def files(self) -> tuple[Path, ...]:
        """Return the folder of a store that is embedded in this process."""
        return ()


class InMemory(AnyVectorStore):
    """The provider of an ``InMemoryVectorStore``."""

    lists = takes_functions = True
    shared = False

    def _listed(self, customer: str, offset: int) -> list[Document]:
        stored = [*self._client.store.items()]
        theirs = [own for own, each in stored if each["metadata"].get(self._key) == customer]
        return [*self.held(theirs[offset : offset + PAGE_SIZE])]


class Chroma(AnyVectorStore):
    """The provider of a ``langchain_chroma.Chroma``, embedded or a server's."""

    lists = True

    def __init__(self, client: Any, key: str | None, *, public: bool) -> None:
        super().__init__(client, key, public=public)
        settings: Any = client._client.get_settings()  # noqa: SLF001 - nobody else knows the folder
        self.shared = bool(settings.chroma_server_host)
        is_here = settings.is_persistent and not self.shared
        self._folder = Path(settings.persist_directory) if is_here else None

    def _listed(self, customer: str, offset: int) -> list[Document]:
        found = self._client.get(where={self._key: customer}, limit=PAGE_SIZE, offset=offset)
        rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
        return [
            Document(id=own, page_content=text or "", metadata=each) for own, text, each in rows
        ]

    def _clean(self, customer: str) -> tuple[str, ...]:
        if self._folder is None:
            return ("its files are the server's: have it cleaned there",) if self.shared else ()
        collection = self._client._collection  # noqa: SLF001 - nobody else knows its id
        collection.count()  # has the engine read its write-ahead queue up to the deletion
        topic = f"%/{collection.id}"
        with closing(sqlite3.connect(self._folder / "chroma.sqlite3", timeout=10)) as database:
            database.execute("PRAGMA secure_delete = ON")
            database.execute(_QUEUE, (topic, topic, f'$."{self._key}"', customer))
            database.execute(_WORDS)
            database.commit()
            database.execute("VACUUM")
        return (_INDEX,)

    async def files(self) -> tuple[Path, ...]:
        """Return the folder of an embedded one."""
        return () if self._folder is None else (self._folder,)


class PGVector(AnyVectorStore):
    """The provider of a ``langchain_postgres.PGVector``, by its public session and tables."""

    lists = True

    def _rows(self, condition: Any, offset: int = 0) -> list[Document]:
        table = self._client.EmbeddingStore
        with self._client.session_maker() as session:
            rows = session.query(table).filter(condition).order_by(table.id)
            return [
                Document(id=each.id, page_content=each.document, metadata=each.cmetadata)
                for each in rows.limit(PAGE_SIZE).offset(offset)
            ]

    def held(self, ids: list[Any]) -> Iterable[Document]:
        """See `AnyVectorStore.held`: an id is of one document in all collections."""
        for first in range(0, len(ids), PAGE_SIZE):
            some = ids[first : first + PAGE_SIZE]
            yield from self._rows(self._client.EmbeddingStore.id.in_(some))

    def _listed(self, customer: str, offset: int) -> list[Document]:
        table = self._client.EmbeddingStore
        with self._client.session_maker() as session:
            here = table.collection_id == self._client.get_collection(session).uuid
        return self._rows(here & (table.cmetadata[self._key].astext == customer), offset)

    def _clean(self, _customer: str) -> tuple[str, ...]:
        return (_VACUUM,)


_KINDS: dict[str, type[AnyVectorStore]] = {
    "langchain_core.vectorstores.in_memory.InMemoryVectorStore": InMemory,
    "langchain_chroma.vectorstores.Chroma": Chroma,
    "langchain_postgres.vectorstores.PGVector": PGVector,
}


def provider_of(client: Any) -> type[AnyVectorStore]:
    """Return the provider's class. The sessions of an asynchronous PGVector are of its loop."""
    names = (f"{each.__module__}.{each.__qualname__}" for each in type(client).__mro__)
    known = next((_KINDS[each] for each in names if each in _KINDS), AnyVectorStore)
    return AnyVectorStore if getattr(client, "async_mode", False) else known
