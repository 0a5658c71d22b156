"""
The memories that remain by the log: what was last written, and not deleted since.

Kept in a temporary database on disk, so that a history of any length fits in memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from ...telemetry.text import recorded_name
from ..queries.text_extraction import part_of
from ..record.rows import deletes_of

_SCHEMA = """
    CREATE TABLE memory(
      store TEXT NOT NULL,
      collection TEXT NOT NULL,
      memory_id TEXT NOT NULL,
      content TEXT,
      created TEXT NOT NULL,
      updated TEXT NOT NULL,
      PRIMARY KEY(store, collection, memory_id)) WITHOUT ROWID
"""
_WRITE = """
    INSERT INTO memory VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET
      content = excluded.content, updated = excluded.updated
"""
_FORGET_ONE = "DELETE FROM memory WHERE store = ? AND collection = ? AND memory_id = ?"
_TOLD = "DELETE FROM memory WHERE store = ? AND collection IN (?, '') AND memory_id = ?"
_FORGET_ALL = """
    DELETE FROM memory WHERE store = :store AND (:collection = '' OR collection = :collection)
"""


class LoggedMemories:
    """The memories that remain after the events that were added, oldest first."""

    def __init__(self, database: sqlite3.Connection) -> None:
        database.execute(_SCHEMA)
        self._database = database

    def add(self, document: dict[str, Any]) -> None:
        """Apply one event, as events.jsonl has it."""
        # A neutral result stands for a call that the store never had; what the journal kept for it
        # counts once it was replayed.
        reached = document["status"] in {"ok", "empty"} and not document["neutral"]
        if document["nested"] or not (reached or document["journal"] == "replayed"):
            return
        if document["class"] == "remember":
            self._write(document)
        elif document["class"] == "forget":
            self._forget(document)

    def _write(self, document: dict[str, Any]) -> None:
        content, moment, ids = document["content"], document["occurred_at"], _ids(document)
        parts = [part_of(content, each, place, len(ids)) for place, each in enumerate(ids)]
        self._database.executemany(
            _WRITE,
            [
                (*_key(document, each), None if part is None else json.dumps(part), moment, moment)
                for each, part in zip(ids, parts, strict=True)
            ],
        )

    def _forget(self, document: dict[str, Any]) -> None:
        ids = _ids(document)
        self._database.executemany(_FORGET_ONE, [_key(document, each) for each in ids])
        deletes = deletes_of(document, document["class"])
        # Without ids a deletion says what it covers by its filter. Of one that was narrowed it is
        # not known what it left.
        if not ids and deletes is not None and deletes.is_whole:
            store, collection, _ = _key(document, "")
            self._database.execute(_FORGET_ALL, {"store": store, "collection": collection})

    def leave_out(self, store: str, record: dict[str, Any]) -> None:
        """Leave out what *store* itself has told, unless it is an earlier version."""
        # The id of an earlier version is that of its memory, which may be there all the same.
        if record["is_current"]:
            place = recorded_name(record["collection"] or ""), recorded_name(record["id"])
            self._database.execute(_TOLD, (store, *place))

    def remembered(self, store: str) -> Iterator[dict[str, Any]]:
        """Yield the memories in *store*, as memories.jsonl has them."""
        found = self._database.execute(
            "SELECT * FROM memory WHERE store = ? ORDER BY created, memory_id", (store,)
        )
        for _store, collection, memory_id, content, created, updated in found:
            yield {
                "id": memory_id,
                "collection": collection or None,
                "content": None if content is None else json.loads(content),
                "created": created,
                "updated": updated,
            }


def _key(document: dict[str, Any], memory_id: str) -> tuple[str, str, str]:
    return (
        document["store"],
        recorded_name(document["collection"] or ""),
        recorded_name(memory_id),
    )


def _ids(document: dict[str, Any]) -> list[str]:
    return [each["memory_id"] for each in document["memories"]]
