"""The memories of a mem0 on this machine, for growth and retention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime, timedelta
from typing import Any

from ...memory.context import context
from ...memory.subject_data.keeping import (
    KeptRecord,
    RecordCount,
    RecordKey,
    RecordPage,
    json_bytes,
)
from ...telemetry.event.spelling import id_text
from ..toolkit.sqlite_cleaning import clean
from ..toolkit.sync_async import resolve
from .history import history_of
from .vectors import Vectors, vectors_of

_HISTORY = (
    "SELECT count(*), coalesce(sum(length(old_memory)), 0) + coalesce(sum(length(new_memory)), 0) "
    "FROM history"
)
_MESSAGES = "SELECT count(*), coalesce(sum(length(content)), 0) FROM messages"
_IN_HISTORY = "SELECT 1 FROM history WHERE memory_id = ? LIMIT 1"
_DELETE_HISTORY = "DELETE FROM history WHERE memory_id = ?"


class Mem0Keeper:
    """
    The `StoreKeeper` of a ``Memory`` or ``AsyncMemory``.

    Args:
        memory: The bare client.
        lock: Held around each call of its vector store, which may not be thread-safe.
    """

    is_loop_bound = False

    def __init__(self, memory: Any, lock: AbstractContextManager[Any]) -> None:
        self._memory = memory
        self._lock = lock

    async def measure(self, most: int) -> Sequence[RecordCount]:
        """Return memories, entities, and the rows of the history's database."""
        counts: list[RecordCount] = []
        for kind in ("memory", "entity"):
            with self._lock:
                vectors = vectors_of(self._memory, entities=kind == "entity")
                if vectors is not None:
                    counts.append(await vectors.measured(kind, most))
        for kind, statement in (("history", _HISTORY), ("message", _MESSAGES)):
            with history_of(self._memory) as connection:
                ((rows, size),) = connection.execute(statement).fetchall()
            counts.append(RecordCount(kind=kind, rows=rows, bytes=size))
        return counts

    async def page(self, after: Any | None = None) -> RecordPage:
        """Return memories, those that expired and are hidden included."""
        with self._lock:
            vectors = self._vectors()
            if vectors is None:
                return RecordPage(())
            found, following = await vectors.page(None, after)
        return RecordPage(tuple(_record(vectors.collection, each) for each in found), following)

    def _vectors(self) -> Vectors | None:
        return vectors_of(self._memory, entities=False)

    async def spared(self, _due: Sequence[KeptRecord]) -> Mapping[RecordKey, str]:
        """Return none: no memory needs another one."""
        return {}

    async def remove(self, client: Any, records: Sequence[KeptRecord]) -> None:
        """Delete memories, and then their history, in which their text stays."""
        for each in records:
            with context(customer=each.owner, purpose="retention"):
                await resolve(client.delete(each.id))
            with history_of(self._memory) as connection:
                connection.execute(_DELETE_HISTORY, (each.id,))
                connection.commit()

    async def left(self, records: Sequence[KeptRecord]) -> Sequence[KeptRecord]:
        """Return those that the vector store or the history has."""
        return [each for each in records if self._is_there(each.id)]

    def _is_there(self, memory_id: str) -> bool:
        with history_of(self._memory) as connection:
            if connection.execute(_IN_HISTORY, (memory_id,)).fetchone():
                return True
        with self._lock:
            return self._memory.vector_store.get(vector_id=memory_id) is not None

    async def clean(self) -> Sequence[str]:
        """Rewrite the history's file, and those of a local vector store."""
        with history_of(self._memory) as connection:
            connection.commit()
            clean(connection)
        with self._lock:
            vectors = self._vectors()
            return () if vectors is None else vectors.clean()


def _record(collection: str, found: Any) -> KeptRecord:
    payload: dict[str, Any] = getattr(found, "payload", None) or {}
    owner = payload.get("user_id")
    stated = (_moment_us(payload.get(name)) for name in ("updated_at", "created_at"))
    return KeptRecord(
        kind="memory",
        id=str(found.id),
        collection=collection,
        owner=None if owner is None else str(id_text(owner)),
        stated_us=max((each for each in stated if each is not None), default=None),
        expires_us=_end_us(payload.get("expiration_date")),
        size_bytes=json_bytes(payload),
        trail_ids=(str(found.id),),
    )


def _moment_us(text: Any) -> int | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    # mem0 writes its own time zone with it; without one nobody can tell.
    return None if moment.tzinfo is None else int(moment.timestamp() * 1_000_000)


def _end_us(text: Any) -> int | None:
    """Return the end of a day in UTC, until which mem0 shows a memory."""
    try:
        day = date.fromisoformat(str(text))
    except ValueError:
        return None
    end = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    return int(end.timestamp() * 1_000_000)
