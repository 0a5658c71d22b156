"""What sessions hold about a person: of SQLite and SQLAlchemy, whose tables list all of them."""

from __future__ import annotations

import copy
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from ...memory.api import PAGE_SIZE, DataSubject, Erased, Page, SubjectRecord
from ...telemetry.event.spelling import id_text
from ..toolkit.sqlite_cleaning import clean, database_files

_NO_OWNER = "customer= was no function of a session's id, so that no session says whose it is"
_NO_LIST = "cannot tell: of this class of session nothing lists the others"
_SERVER = ("the database may keep deleted rows in its files until it is vacuumed",)


class SessionData:
    """The provider of a session, for all in its database. *owner_of* None: nobody is known."""

    store = "openai_agents"
    title = "Conversations with you"

    def __init__(self, client: Any, owner_of: Any) -> None:
        while (inner := getattr(client, "underlying_session", None)) is not None:
            client = inner  # what another one encrypts is listed as it is stored
        self._client, self._owner_of, path = client, owner_of, getattr(client, "db_path", None)
        self._engine: Any = getattr(client, "_engine", None)
        self._path = None if path is None or str(path) == ":memory:" else Path(path)
        lists = None if path or self._engine else _NO_LIST
        self.unavailable = lists if callable(owner_of) else _NO_OWNER

    async def _theirs(self, subject: DataSubject) -> list[Any]:
        await self._client.get_items(limit=1)  # it has a connection then, which its copies use
        ids: list[str] = [self._client.session_id]
        if self._engine is not None:
            async with self._engine.connect() as connection:
                table = self._client._sessions.select()  # noqa: SLF001 - its own
                ids = [each[0] for each in await connection.execute(table)]
        elif self._path is not None:
            query = f"SELECT session_id FROM {self._client.sessions_table}"  # noqa: S608 - its own
            with closing(sqlite3.connect(self._path)) as file:
                ids = [each for (each,) in file.execute(query)]
        found: list[Any] = []
        for session_id in sorted(ids):
            if id_text(self._owner_of(session_id)) == subject.customer:
                found.append(copy.copy(self._client))
                found[-1].session_id = session_id
        return found

    async def page(self, subject: DataSubject, after: Any | None = None) -> Page:
        """Return the conversations of *subject*, as they are stored, with all branches."""
        first, found = after or 0, await self._theirs(subject)
        last, kinds = first + PAGE_SIZE, type(self._client).__mro__
        # A subclass of it reads one branch alone, and a limit of the user's own hides the rest.
        kind: Any = next((each for each in kinds if each.__name__ == "SQLiteSession"), kinds[0])
        records = [
            SubjectRecord(
                kind="thread", id=each.session_id, content=await kind.get_items(each, 2**31)
            )
            for each in found[first:last]
        ]
        return Page(tuple(records), last if len(found) > last else None)

    async def erase(self, subject: DataSubject) -> Erased:
        """Clear the conversations of *subject*, and SQLite's file of what was in them."""
        found = await self._theirs(subject)
        for each in found:
            await each.clear_session()
        if found and self._path is not None:
            with closing(sqlite3.connect(self._path, isolation_level=None)) as file:
                clean(file)
        return Erased(len(found), messages=_SERVER if found and self._engine is not None else ())

    async def files(self) -> tuple[Path, ...]:
        """Return SQLite's files."""
        return () if self._path is None else tuple(database_files(self._path))
