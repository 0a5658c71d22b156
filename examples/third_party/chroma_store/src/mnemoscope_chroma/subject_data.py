"""The documents about a person in a collection, and their erasure, from Chroma's files too."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from mnemoscope.memory.api import PAGE_SIZE, DataSubject, Erased, Page, SubjectRecord

_THEIRS = "SELECT id FROM embeddings_queue WHERE topic LIKE ? AND json_extract(metadata, ?) = ?"
_QUEUE = f"UPDATE embeddings_queue SET metadata = NULL WHERE topic LIKE ? AND id IN ({_THEIRS})"  # noqa: S608 - two constants
_WORDS = "INSERT INTO embedding_fulltext_search(embedding_fulltext_search) VALUES ('optimize')"


class Documents:
    """The documents of one collection whose metadata name their owner."""

    store = "my.chroma"
    title = "Documents about you"
    unavailable = None

    def __init__(self, collection: Any, owner_key: str) -> None:
        self._collection = collection
        self._owner_key = owner_key

    async def page(self, subject: DataSubject, after: Any | None = None) -> Page:
        """Return the documents of *subject*, as they are stored."""
        offset, theirs = after or 0, {self._owner_key: subject.customer}
        found = self._collection.get(where=theirs, limit=PAGE_SIZE, offset=offset)
        rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
        records = tuple(
            SubjectRecord(
                kind="memory",
                id=id_,
                collection=self._collection.name,
                content={"document": document, "metadata": metadata},
            )
            for id_, document, metadata in rows
        )
        return Page(records, offset + PAGE_SIZE if len(records) == PAGE_SIZE else None)

    async def erase(self, subject: DataSubject) -> Erased:
        """Delete the documents of *subject*, and what the write-ahead queue keeps of them."""
        deleted = self._collection.delete(where={self._owner_key: subject.customer})
        self._collection.count()  # has the engine read its queue up to the deletion
        for folder in await self.files():
            self._clean(folder / "chroma.sqlite3", subject.customer)
        return Erased(deleted["deleted"])

    def _clean(self, path: Path, customer: str) -> None:
        topic = f"%/{self._collection.id}"
        with closing(sqlite3.connect(path, timeout=10)) as database:
            database.execute("PRAGMA secure_delete = ON")
            database.execute(_QUEUE, (topic, topic, f'$."{self._owner_key}"', customer))
            database.execute(_WORDS)
            database.commit()
            database.execute("VACUUM")

    async def files(self) -> tuple[Path, ...]:
        """Return the folder of a collection that is embedded in this process."""
        settings = self._collection._client.get_settings()  # noqa: SLF001 - nobody else knows
        return (Path(settings.persist_directory),) if settings.is_persistent else ()
