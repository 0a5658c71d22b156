"""
Where each memory came from, and how often it was used, by the log.

Kept in a temporary database on disk, so that a history of any length fits in memory.
"""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

from ...telemetry.text import recorded_name
from ..queries.text_extraction import part_of
from .reading import readable
from .statements import RECALLS

_SCHEMA = (
    """
    CREATE TABLE written(
      store TEXT NOT NULL,
      memory_id TEXT NOT NULL,
      collection TEXT NOT NULL,
      seq INTEGER NOT NULL,
      moment TEXT NOT NULL,
      agent TEXT,
      purpose TEXT,
      origin TEXT,
      kind TEXT,
      said TEXT,
      PRIMARY KEY(store, memory_id, collection)) WITHOUT ROWID
    """,
    """
    CREATE TABLE used(
      store TEXT NOT NULL,
      memory_id TEXT NOT NULL,
      times INTEGER NOT NULL,
      first TEXT NOT NULL,
      last TEXT NOT NULL,
      PRIMARY KEY(store, memory_id)) WITHOUT ROWID
    """,
)
# The first write counts: a later one changes a memory that was there.
_WRITTEN = "INSERT INTO written VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_USED = """
    INSERT INTO used VALUES (?, ?, 1, ?, ?)
    ON CONFLICT DO UPDATE SET times = times + 1, last = excluded.last
"""
_LONGEST_SAID = 4_096
THREAD = "thread"


class Provenance(NamedTuple):
    """
    Where one memory came from. All of it None: the log does not know.

    Attributes:
        origin: ``provided``, ``observed`` or ``inferred``.
        source: The event that first wrote it: ``seq``, ``occurred_at``, ``agent``, ``purpose`` and
            ``kind`` of source.
        used: How often it was recalled: ``times``, ``first`` and ``last``.
    """

    origin: str | None
    source: dict[str, Any] | None
    used: dict[str, Any]


class ProvenanceIndex:
    """The provenance of the memories in the events that were added, oldest first."""

    def __init__(self, database: sqlite3.Connection) -> None:
        for each in _SCHEMA:
            database.execute(each)
        self._database = database

    def add(self, document: dict[str, Any]) -> None:
        """Take one event into account, as events.jsonl has it."""
        ids = [recorded_name(each["memory_id"]) for each in document["memories"]]
        if not ids:
            return
        store, moment = document["store"], document["occurred_at"]
        if document["class"] in RECALLS:
            self._database.executemany(_USED, [(store, each, moment, moment) for each in ids])
        elif document["class"] == "remember":
            self._database.executemany(_WRITTEN, _rows(document, ids))

    def of(self, store: str, record: dict[str, Any]) -> Provenance:
        """Return whence *record* came, a line of memories.jsonl of *store*."""
        if record["kind"] == THREAD:  # the conversation itself, which the agents saved
            # No single event wrote it: each step of the graph saved it anew.
            return Provenance("observed", None, {"times": 0, "first": None, "last": None})
        memory_id = recorded_name(record["id"])
        found = self._database.execute(
            "SELECT * FROM written WHERE store = ? AND memory_id = ?", (store, memory_id)
        ).fetchall()
        if len(found) > 1:  # one name in several places: it is one of them, or cannot be told
            collection = recorded_name(record["collection"] or "")
            found = [each for each in found if each[2] == collection]
        used = self._database.execute(
            "SELECT times, first, last FROM used WHERE store = ? AND memory_id = ?",
            (store, memory_id),
        ).fetchone()
        times, first, last = used or (0, None, None)
        usage = {"times": times, "first": first, "last": last}
        if len(found) != 1:
            return Provenance(None, None, usage)
        _store, _id, _collection, seq, moment, agent, purpose, origin, kind, said = found[0]
        source = {
            "seq": seq,
            "occurred_at": moment,
            "agent": agent,
            "purpose": purpose,
            "kind": kind,
        }
        return Provenance(_origin(origin, said, record["content"]), source, usage)


def _rows(document: dict[str, Any], ids: list[str]) -> list[tuple[Any, ...]]:
    content = document["content"]
    source: dict[str, Any] = document["source"] or {}
    known = (
        *(recorded_name(document["collection"] or ""), document["seq"], document["occurred_at"]),
        *(document["agent"], document["purpose"], document["origin"], source.get("kind")),
    )
    parts = [part_of(content, each, place, len(ids)) for place, each in enumerate(ids)]
    # Words of the agent or a tool are no evidence that the person said them.
    is_quotable = document["origin"] == "provided"
    return [
        (document["store"], each, *known, _said(part) if is_quotable else None)
        for each, part in zip(ids, parts, strict=True)
    ]


def _said(part: Any) -> str:
    return " ".join(readable(part).split())[:_LONGEST_SAID]


def _origin(origin: str | None, said: str | None, content: Any) -> str | None:
    """Return the origin of a memory: what is in other words than were said was worked out."""
    if origin != "provided":
        return origin
    # A store may keep what a model made of the messages, so that a write by the user can hold a
    # conclusion.
    words, written = _said(content), said or ""
    is_quoted = bool(words) and (words in written or written in words)
    return "provided" if is_quoted else "inferred"
