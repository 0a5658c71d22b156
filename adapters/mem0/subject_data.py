"""
Subject data in mem0, which keeps more about a person than it recalls.

Beside the memories it keeps a history of their texts, deleted ones included, the last messages of
each session, and where it finds names a collection of them. Its own ``delete_all`` leaves those
three, and the history names nobody: whose a row is tells the memory, or the audit trail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...memory.guard.answers import achecked
from ...memory.subject_data.records import (
    DataSubject,
    Erased,
    LoggedMemory,
    Page,
    StoredMemory,
    SubjectRecord,
    UncertainOwnerError,
    VectorDimensions,
)
from ..toolkit.sqlite_cleaning import clean, database_files
from ..toolkit.sync_async import resolve
from ..toolkit.type_guards import is_list
from .history import history_of
from .hosted_answers import checking_deletions
from .hosted_methods import HOSTED_METHODS
from .local_store import locals_of
from .scoping import as_stored
from .vectors import records, vectors_of

if TYPE_CHECKING:
    from ...memory.subject_data.keeping import StoreKeeper

_HISTORY = "SELECT id, old_memory, new_memory, event, created_at FROM history WHERE memory_id = ?"
_DELETE_HISTORY = "DELETE FROM history WHERE memory_id = ?"
_SCOPES = "SELECT DISTINCT session_scope FROM messages"
_MESSAGES = "SELECT id, role, name, content, created_at FROM messages WHERE session_scope = ?"
_DELETE_MESSAGES = "DELETE FROM messages WHERE session_scope = ?"
_UNATTRIBUTED = "SELECT count(DISTINCT memory_id) FROM history WHERE is_deleted = 1"

_UNATTRIBUTED_REMAIN = (
    "mem0's history keeps {n:,} memories that were deleted before, of persons it does not name: "
    "those that the audit trail knows to be this customer's are gone"
)

SHOWN = {"show_expired": True, "latest_only": False}
"""Options of the hosted service's listings, with the values that hide nothing."""

_EXPIRING = "{n:,} of them had a date on which the service hides a memory, and keeps it"
_SPACED = "the hosted mem0 may take an id with space around it for another one: ask without it"
_BACKUPS = "the hosted mem0 says nothing of its own backups"
_IN_MEMORY = ":memory:"
_STAGES = ("memory", "history", "message", "entity")


class MemorySubjectData:
    """
    The provider of a ``Memory`` or ``AsyncMemory``: memories, history, messages and entities.

    Args:
        memory: The bare client; its vector store and history are synchronous in any case.
        lock: Held around each call, for stores that are not thread-safe.
    """

    store = "mem0"
    title = "Facts about you"
    unavailable = None

    def __init__(self, memory: Any, lock: AbstractContextManager[Any] | None = None) -> None:
        self._memory = memory
        self._lock = lock or nullcontext()

    async def page(self, subject: DataSubject, after: Any | None = None) -> Page:
        """Return memories first, then history, messages and entities."""
        stage, offset = after or (0, None)
        if stage >= len(_STAGES):
            return Page(())
        with self._lock:
            found, following = await self._stage(_STAGES[stage], subject, offset)
        return Page(found, (stage + 1, None) if following is None else (stage, following))

    async def _stage(
        self, kind: str, subject: DataSubject, offset: Any
    ) -> tuple[tuple[SubjectRecord, ...], Any]:
        if kind == "history":
            return tuple(self._history(await self._memory_ids(subject))), None
        if kind == "message":
            return tuple(self._messages(subject)), None
        vectors = vectors_of(self._memory, entities=kind == "entity")
        if vectors is None:
            return (), None
        found, following = await vectors.page(subject.customer, offset)
        return tuple(_record(kind, each, vectors.collection) for each in found), following

    def _history(self, memory_ids: Iterable[str]) -> Iterator[SubjectRecord]:
        for memory_id in memory_ids:
            for row_id, old, new, event, created in self._rows(_HISTORY, memory_id):
                content = {"event": event, "before": old, "after": new}
                yield SubjectRecord(kind="history", id=row_id, content=content, created=created)

    def _messages(self, subject: DataSubject) -> Iterator[SubjectRecord]:
        for scope in self._sessions(subject):
            for row_id, role, name, content, created in self._rows(_MESSAGES, scope):
                said = {"role": role, "name": name, "content": content}
                yield SubjectRecord(kind="message", id=row_id, content=said, created=created)

    async def dimensions(self) -> VectorDimensions | None:
        """Return the dimensions that its embedder makes, and that its collection has."""
        vectors = vectors_of(self._memory, entities=False)
        made = getattr(self._memory.embedding_model.config, "embedding_dims", None)
        with self._lock:
            stored = None if vectors is None else await vectors.dimensions()
        if vectors is None or stored is None or not isinstance(made, int):
            return None
        return VectorDimensions(vectors.collection, made, stored)

    async def erase(self, subject: DataSubject) -> Erased:
        """Remove every memory of the person. The history goes first: memory ids find its rows."""
        with self._lock:
            memory_ids, sessions = await self._memory_ids(subject), self._sessions(subject)
            # mem0's own delete leaves the text in the history.
            removed = sum(self._delete(_DELETE_HISTORY, each) for each in memory_ids)
            removed += sum(self._delete(_DELETE_MESSAGES, each) for each in sessions)
            messages = self._clean()
            for entities in (True, False):
                vectors = vectors_of(self._memory, entities=entities)
                if vectors is not None:
                    removed += await vectors.remove(subject.customer)
                    messages += vectors.clean()
        return Erased(removed, messages=tuple(dict.fromkeys(messages)))

    async def find(self, memory: LoggedMemory) -> StoredMemory | None:
        """See `MemoryRemover.find`: ids of mem0 are those of all its users."""
        with self._lock:
            found = await resolve(self._memory.get(memory.memory_id))
        return None if found is None else StoredMemory(memory.memory_id, found.get("user_id"))

    async def remove(self, client: Any, _memory: LoggedMemory, found: StoredMemory) -> None:
        """See `MemoryRemover.remove`: the history has its text, too."""
        await resolve(client.delete(found.place))
        with self._lock:
            self._delete(_DELETE_HISTORY, found.place)
            self._clean()

    def keeper(self) -> StoreKeeper:
        """See `KeepsRecords`."""
        from .keeper import Mem0Keeper  # noqa: PLC0415 - only where it is wanted

        return Mem0Keeper(self._memory, self._lock)

    def close_local(self) -> None:
        """Close local vector stores; see `SubjectDataRegistry.close_local_clients`."""
        with self._lock:
            for local in locals_of(self._memory):
                local.close()

    def _clean(self) -> tuple[str, ...]:
        with history_of(self._memory) as connection:
            clean(connection)
            ((count,),) = connection.execute(_UNATTRIBUTED).fetchall()
        return (_UNATTRIBUTED_REMAIN.format(n=count),) if count else ()

    async def _memory_ids(self, subject: DataSubject) -> Iterable[str]:
        known = list(subject.memory_ids.get(self.store, ()))
        vectors = vectors_of(self._memory, entities=False)
        found = (
            [str(each.id) async for each in records(vectors, subject.customer)] if vectors else []
        )
        return dict.fromkeys([*known, *found])

    def _sessions(self, subject: DataSubject) -> list[str]:
        # mem0 joins the ids to one text: compared in parts, so that u1 does not find u10.
        part = f"user_id={_escaped(subject.customer)}"
        return [scope for (scope,) in self._rows(_SCOPES) if part in (scope or "").split("&")]

    def _rows(self, statement: str, *values: str) -> list[Any]:
        with history_of(self._memory) as connection:
            found: list[Any] = connection.execute(statement, values).fetchall()
            return found

    def _delete(self, statement: str, value: str) -> int:
        with history_of(self._memory) as connection:
            deleted = connection.execute(statement, (value,)).rowcount
            connection.commit()
            return int(deleted)

    async def files(self) -> tuple[Path, ...]:
        """Return the history's file, and those of a vector store on this machine."""
        path = self._memory.db.db_path
        history = () if path == _IN_MEMORY else tuple(database_files(Path(path)))
        vectors = vectors_of(self._memory, entities=False)
        return (*history, *(vectors.files() if vectors else ()))


class HostedSubjectData:
    """The provider of a hosted client, synchronous or not: the service's memories."""

    store = "mem0"
    title = "Facts about you"
    unavailable = None

    def __init__(self, client: Any) -> None:
        self._client = client

    async def page(self, subject: DataSubject, after: Any | None = None) -> Page:
        """Return memories of *subject*."""
        number = after or 1
        rows, following = await self._rows(subject, number)
        records_found = tuple(
            SubjectRecord(
                kind="memory",
                id=str(each.get("id")),
                content=each.get("memory"),
                created=each.get("created_at"),
                updated=each.get("updated_at"),
            )
            for each in rows
        )
        return Page(records_found, number + 1 if following else None)

    async def erase(self, subject: DataSubject) -> Erased:
        """Delete all memories on the service, hidden expired ones too, and then the user."""
        found: list[Any] = []
        number, following = 1, True
        while following:
            rows, following = await self._rows(subject, number)
            found += rows
            number += 1
        expiring = [each["id"] for each in found if each.get("expiration_date")]
        if expiring:  # by their ids: nothing says that `delete_all` reaches what is not shown
            memories = [{"memory_id": each} for each in expiring]
            await self._call("batch_delete", memories=memories)
        if found:
            # Not without memories: the service answers 404 for a user that it does not know.
            await self._call("delete_all", user_id=_user(subject))
            await self._call("delete_users", user_id=_user(subject))
        told = (_EXPIRING.format(n=len(expiring)),) if expiring else ()
        return Erased(len(found), messages=(*told, _BACKUPS))

    async def _rows(self, subject: DataSubject, number: int) -> tuple[list[Any], Any]:
        """Return one page of all that the service has, shown or not, and whether there are more."""
        wanted = {"filters": {"user_id": _user(subject)}, "page": number, **_everything()}
        answer = await self._call("get_all", **wanted)
        return (answer, None) if is_list(answer) else (answer["results"], answer.get("next"))

    async def find(self, memory: LoggedMemory) -> StoredMemory | None:
        """See `MemoryRemover.find`."""
        found = await self._call("get", memory_id=memory.memory_id)
        return StoredMemory(memory.memory_id, found.get("user_id")) if found else None

    async def remove(self, client: Any, _memory: LoggedMemory, found: StoredMemory) -> None:
        """See `MemoryRemover.remove`."""
        await resolve(client.delete(found.place))

    async def _call(self, name: str, **kwargs: Any) -> Any:
        method: Callable[..., Any] = getattr(self._client, name)
        row = HOSTED_METHODS[name]
        with checking_deletions(self._client, name):
            return await achecked(name, row.answer or bool, _asked(method, kwargs))

    async def files(self) -> tuple[Path, ...]:
        """Return none: the service is on another machine."""
        return ()


async def _asked(method: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    return await resolve(method(**kwargs))


@cache
def _everything() -> dict[str, bool]:
    """Return the options of a listing that show what the service hides, as this client has them."""
    options: Any = import_module("mem0.client.types").GetAllMemoryOptions
    return {name: shown for name, shown in SHOWN.items() if name in options.model_fields}


def _user(subject: DataSubject) -> str:
    """
    Return the id of *subject* for the service.

    Raises:
        UncertainOwnerError: The service may take it for the id without the space around it.
    """
    if as_stored(subject.customer) != subject.customer:
        raise UncertainOwnerError(_SPACED)
    return subject.customer


def _escaped(value: str) -> str:
    return value.replace("%", "%25").replace("&", "%26").replace("=", "%3D")


def _record(kind: str, found: Any, collection: str) -> SubjectRecord:
    payload: dict[str, Any] = getattr(found, "payload", None) or {}
    return SubjectRecord(
        kind=kind,
        id=str(found.id),
        collection=collection,
        content=payload.get("data"),
        created=payload.get("created_at"),
        updated=payload.get("updated_at"),
    )
