"""The records about a person in a collection, and what Chroma's files keep of erased ones."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from ...memory.api import PAGE_SIZE
from ..toolkit.listed_records import ListedRecords
from ..toolkit.owned_records import VectorRow
from ..toolkit.sync_async import resolve

_THEIRS = "SELECT id FROM embeddings_queue WHERE topic LIKE ? AND json_extract(metadata, ?) = ?"
_QUEUE = f"UPDATE embeddings_queue SET metadata = NULL WHERE topic LIKE ? AND id IN ({_THEIRS})"  # noqa: S608 - two constants
_WORDS = "INSERT INTO embedding_fulltext_search(embedding_fulltext_search) VALUES ('optimize')"
# Its files are written with memory that nothing has set: texts were seen in them.
_INDEX = (
    "Chroma keeps ids of deleted documents in its queue, and their vectors in its index files, "
    "which may have pieces of its memory in them, texts too: copy the collection to a new folder"
)


class CollectionData(ListedRecords):
    """The provider of a collection, which a function returns, of a client."""

    store = "chroma"

    def __init__(self, client: Any, collection: Any, key: str | None, *, public: bool) -> None:
        super().__init__(key, public=public)
        self._collection = collection
        settings = client.get_settings()
        self.shared = bool(settings.chroma_server_host)
        is_away = self.shared or not settings.is_persistent
        self._folder = None if is_away else Path(settings.persist_directory)

    async def _listed(self, customer: str, offset: int) -> list[VectorRow]:
        of_them = {"where": {self._key: customer}, "limit": PAGE_SIZE, "offset": offset}
        found = await resolve(self._collection().get(**of_them))
        return [*map(VectorRow, found["ids"], found["documents"], found["metadatas"])]

    def _remove(self, ids: list[str]) -> Any:
        return self._collection().delete(ids=ids)

    def _clean(self, customer: str) -> tuple[str, ...]:
        if self._folder is None:
            return ("its files are the server's: have it cleaned there",) if self.shared else ()
        collection = self._collection()
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
