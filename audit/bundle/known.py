"""
The memories that a history leads to: what was last written, where nothing forgot it since.

Kept in a temporary database on disk, which has no name and is gone with the process, so that a
history of any length fits in memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from ..memory_model import EVERYTHING

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
_FORGET_ALL = """
    DELETE FROM memory WHERE store = :store AND (:collection = '' OR collection = :collection)
"""
_PARTS = ("points", "messages", "memories")
"""Where a write of many has a part for each."""


class Known:
    """What is remembered, by what the log says. Fed with events, oldest first."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute(_SCHEMA)
        self._database.execute("BEGIN")

    def close(self) -> None:
        """Let go of it."""
        self._database.close()

    def add(self, document: dict[str, Any]) -> None:
        """Take note of one event, as events.jsonl has it."""
        reached = document["status"] in {"ok", "empty"} and not document["neutral"]
        if document["nested"] or not (reached or document["journal"] == "replayed"):
            return
        if document["class"] == "remember":
            self._write(document)
        elif document["class"] == "forget":
            self._forget(document)

    def _write(self, document: dict[str, Any]) -> None:
        content, moment, ids = document["content"], document["occurred_at"], _ids(document)
        parts = _parts(content, len(ids))
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
        if not ids and document["method"] in EVERYTHING:
            store, collection, _ = _key(document, "")
            self._database.execute(_FORGET_ALL, {"store": store, "collection": collection})

    def remembered(self, store: str) -> Iterator[dict[str, Any]]:
        """Yield what is remembered in *store*, as memories.jsonl has it."""
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
    return document["store"], document["collection"] or "", memory_id


def _ids(document: dict[str, Any]) -> list[str]:
    return [each["memory_id"] for each in document["memories"]]


def _parts(content: Any, number: int) -> list[Any]:
    """Return what a write says of each of so many memories: its part, or all of it."""
    if number > 1 and content.__class__ is dict:
        found: Any = next((content[name] for name in _PARTS if name in content), ())
        if found.__class__ is list and len(found) == number:
            return found
    return [content] * number
