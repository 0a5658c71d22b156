"""The messages about a person in LlamaIndex's memories and chat stores."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from inspect import isawaitable
from pathlib import Path
from typing import Any

from ...memory.api import PAGE_SIZE, DataSubject, Erased, Page, SubjectRecord
from ...telemetry.event.spelling import id_text
from ..toolkit.sqlite_cleaning import clean, database_files

Owner = Callable[[str], str | None]  # returns whose a session is, by its key

_UNKNOWN = "cannot tell: this memory has no chat store that lists by session"
_BLOCKS = "its memory blocks keep what they were given of older messages: erase it where they do"
_SERVER = "deleted rows may stay in the files of its database: have them cleaned there"


class ChatSessions:
    """The sessions in one client's chat store. *session*: the one that is meant, of a memory."""

    store = "llama_index"
    title = "Conversations with you"

    def __init__(self, client: Any, owner_of: Owner | None, session: str | None) -> None:
        self._owner_of, self._session = owner_of, session
        self._has_blocks = bool(getattr(client, "memory_blocks", None))
        self._store = getattr(client, "sql_store", getattr(client, "chat_store", client))
        untold = None if owner_of else "wrapped without owner=: no session says whose it is"
        self.unavailable = untold if hasattr(self._store, "get_keys") else _UNKNOWN
        engine = getattr(self._store, "_async_engine", None)
        self._uri = str(engine.url if engine else getattr(self._store, "async_database_uri", ""))
        path = self._uri.partition(":///")[2] if self._uri.startswith("sqlite") else ""
        self._file = Path(path) if path not in {"", ":memory:"} else None

    async def _found(self, subject: DataSubject) -> list[tuple[str, Any]]:
        """Return each message of *subject*'s with its session, archived ones too."""
        known = [self._session] if self._session else sorted(await _done(self._store.get_keys()))
        every = {"status": None} if hasattr(self._store, "archive_oldest_messages") else {}
        owner_of, customer = self._owner_of, subject.customer
        theirs = [each for each in known if owner_of and id_text(owner_of(each)) == customer]
        found = [(each, await _done(self._store.get_messages(each, **every))) for each in theirs]
        return [(key, each) for key, held in found for each in held]

    async def page(self, subject: DataSubject, after: Any | None = None) -> Page:
        """Return messages of *subject*, as they are stored."""
        first: int = after or 0
        found, last = await self._found(subject), first + PAGE_SIZE
        records = tuple(
            SubjectRecord(kind="message", id=f"{key}/{n}", content=str(each))
            for n, (key, each) in enumerate(found[first:last], first)
        )
        return Page(records, last if last < len(found) else None)

    async def erase(self, subject: DataSubject) -> Erased:
        """Delete the sessions of *subject*, from a SQLite file on this machine too."""
        found = await self._found(subject)
        for key in dict(found):
            await _done(self._store.delete_messages(key))
        left = [_BLOCKS] if self._has_blocks else []
        if self._file is not None:
            with closing(sqlite3.connect(self._file, timeout=10)) as database:
                clean(database)
        elif self._uri and not self._uri.startswith("sqlite"):
            left.append(_SERVER)
        return Erased(len(found), messages=tuple(left))

    async def files(self) -> tuple[Path, ...]:
        """Return the files of a SQLite database."""
        return () if self._file is None else tuple(database_files(self._file))


async def _done(answer: Any) -> Any:
    return await answer if isawaitable(answer) else answer
