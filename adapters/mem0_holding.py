"""
What mem0 holds about a person, which is more than it recalls.

Beside the memories it keeps a history of their texts, deleted ones included, the last messages of
each session, and where it finds names a collection of them. Its own ``delete_all`` leaves those
three, and the history names nobody: whose a row is tells the memory, or the audit trail.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ..memory.holdings import Forgotten, Held, Page, Person
from .colours import settled
from .mem0_vectors import records, vectors_of
from .sqlite_cleaning import beside, clean

_HISTORY = "SELECT id, old_memory, new_memory, event, created_at FROM history WHERE memory_id = ?"
_FORGET_HISTORY = "DELETE FROM history WHERE memory_id = ?"
_SCOPES = "SELECT DISTINCT session_scope FROM messages"
_MESSAGES = "SELECT id, role, name, content, created_at FROM messages WHERE session_scope = ?"
_FORGET_MESSAGES = "DELETE FROM messages WHERE session_scope = ?"
_NOBODYS = "SELECT count(DISTINCT memory_id) FROM history WHERE is_deleted = 1"

_NOBODYS_REMAIN = (
    "mem0's history keeps {n:,} memories that were deleted before, of persons it does not name: "
    "those that the audit trail knows to be this customer's are gone"
)

_IN_MEMORY = ":memory:"
_STAGES = ("memory", "history", "message", "entity")


class MemoryHolding:
    """
    What a ``Memory`` or ``AsyncMemory`` holds: memories, history, messages and entities.

    Args:
        memory: The bare client. Both colours are synchronous below.
        turns: Held around each call, for stores that are not thread-safe.
    """

    store = "mem0"
    unasked = None

    def __init__(self, memory: Any, turns: AbstractContextManager[Any] | None = None) -> None:
        self._memory = memory
        self._turns = turns or nullcontext()

    async def page(self, person: Person, after: Any | None = None) -> Page:
        """Return memories first, then what is kept beside them."""
        stage, offset = after or (0, None)
        if stage >= len(_STAGES):
            return Page(())
        with self._turns:
            held, following = await self._stage(_STAGES[stage], person, offset)
        return Page(held, (stage + 1, None) if following is None else (stage, following))

    async def _stage(self, kind: str, person: Person, offset: Any) -> tuple[tuple[Held, ...], Any]:
        if kind == "history":
            return tuple(self._history(await self._memory_ids(person))), None
        if kind == "message":
            return tuple(self._messages(person)), None
        vectors = vectors_of(self._memory, entities=kind == "entity")
        if vectors is None:
            return (), None
        found, following = await vectors.page(_user(person), offset)
        return tuple(_held(kind, each, vectors.collection) for each in found), following

    def _history(self, memory_ids: Iterable[str]) -> Iterator[Held]:
        for memory_id in memory_ids:
            for row_id, old, new, event, created in self._rows(_HISTORY, memory_id):
                content = {"event": event, "before": old, "after": new}
                yield Held(kind="history", id=row_id, content=content, created=created)

    def _messages(self, person: Person) -> Iterator[Held]:
        for scope in self._sessions(person):
            for row_id, role, name, content, created in self._rows(_MESSAGES, scope):
                said = {"role": role, "name": name, "content": content}
                yield Held(kind="message", id=row_id, content=said, created=created)

    async def forget(self, person: Person) -> Forgotten:
        """Remove all of it. The history goes first: the memories tell which rows are theirs."""
        with self._turns:
            memory_ids, sessions = await self._memory_ids(person), self._sessions(person)
            removed = sum(self._delete(_FORGET_HISTORY, each) for each in memory_ids)
            removed += sum(self._delete(_FORGET_MESSAGES, each) for each in sessions)
            messages = self._clean()
            for entities in (True, False):
                vectors = vectors_of(self._memory, entities=entities)
                if vectors is not None:
                    removed += await vectors.remove(_user(person))
                    messages += vectors.clean()
        return Forgotten(removed, messages=tuple(dict.fromkeys(messages)))

    def _clean(self) -> tuple[str, ...]:
        with _connection(self._memory.db) as connection:
            clean(connection)
            ((nobodys,),) = connection.execute(_NOBODYS).fetchall()
        return (_NOBODYS_REMAIN.format(n=nobodys),) if nobodys else ()

    async def _memory_ids(self, person: Person) -> Iterable[str]:
        known = list(person.memory_ids.get(self.store, ()))
        vectors = vectors_of(self._memory, entities=False)
        found = [str(each.id) async for each in records(vectors, _user(person))] if vectors else []
        return dict.fromkeys([*known, *found])

    def _sessions(self, person: Person) -> list[str]:
        part = f"user_id={_escaped(_user(person))}"
        return [scope for (scope,) in self._rows(_SCOPES) if part in (scope or "").split("&")]

    def _rows(self, statement: str, *values: str) -> list[Any]:
        with _connection(self._memory.db) as connection:
            found: list[Any] = connection.execute(statement, values).fetchall()
            return found

    def _delete(self, statement: str, value: str) -> int:
        with _connection(self._memory.db) as connection:
            deleted = connection.execute(statement, (value,)).rowcount
            connection.commit()
            return int(deleted)

    async def files(self) -> tuple[Path, ...]:
        """Return the history's file, and those of a vector store on this machine."""
        path = self._memory.db.db_path
        history = () if path == _IN_MEMORY else tuple(beside(Path(path)))
        vectors = vectors_of(self._memory, entities=False)
        return (*history, *(vectors.files() if vectors else ()))


@contextmanager
def _connection(database: Any) -> Generator[Any]:
    """Lend mem0's connection to its history, under the lock that mem0's own writers hold."""
    with database._lock:  # noqa: SLF001 - see above
        yield database.connection


class HostedHolding:
    """
    What the hosted service holds, by a ``MemoryClient`` or ``AsyncMemoryClient``.

    Args:
        client: The bare client.
    """

    store = "mem0"
    unasked = None

    def __init__(self, client: Any) -> None:
        self._client = client

    async def page(self, person: Person, after: Any | None = None) -> Page:
        """Return memories of *person*."""
        number = after or 1
        answer = await self._ask("get_all", filters={"user_id": _user(person)}, page=number)
        held = tuple(
            Held(
                kind="memory",
                id=str(each.get("id")),
                content=each.get("memory"),
                created=each.get("created_at"),
                updated=each.get("updated_at"),
            )
            for each in answer.get("results", ())
        )
        return Page(held, number + 1 if answer.get("next") else None)

    async def forget(self, person: Person) -> Forgotten:
        """Have the service delete them, and the user with them."""
        held = 0
        after: Any | None = None
        while True:
            page = await self.page(person, after)
            held += len(page.held)
            after = page.after
            if after is None:
                break
        if held:
            await self._ask("delete_all", user_id=_user(person))
            await self._ask("delete_users", user_id=_user(person))
        return Forgotten(held, messages=("the hosted mem0 says nothing of its own backups",))

    async def _ask(self, name: str, **kwargs: Any) -> Any:
        method: Callable[..., Any] = getattr(self._client, name)
        return await settled(method(**kwargs))

    async def files(self) -> tuple[Path, ...]:
        """Return none: it is on somebody else's machine."""
        return ()


def _user(person: Person) -> str:
    return person.customer.strip()  # as mem0 does with every id


def _escaped(value: str) -> str:
    return value.replace("%", "%25").replace("&", "%26").replace("=", "%3D")


def _held(kind: str, record: Any, collection: str) -> Held:
    payload: dict[str, Any] = getattr(record, "payload", None) or {}
    return Held(
        kind=kind,
        id=str(record.id),
        collection=collection,
        content=payload.get("data"),
        created=payload.get("created_at"),
        updated=payload.get("updated_at"),
    )
