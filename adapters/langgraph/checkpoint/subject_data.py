"""
Subject data in a checkpointer: the person's threads.

A thread's id says nothing of whose it is. The audit trail does, since it has the checkpoints that
were written in each customer's name; so does the metadata of those whose config had ``user_id``.
A thread that two customers have written in is neither's alone: it is kept, and said, unless it is
asked for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, Callable, Collection
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from ....memory.errors import DeadlineExceededError
from ....memory.subject_data.records import DataSubject, Erased, Page, SubjectRecord
from ....telemetry.event.spelling import id_forms, id_text
from ...toolkit.sync_async import loop_of, run_in_client_loop
from ...toolkit.type_guards import is_dict, is_sequence, is_set
from ..files import checkpoints_in, clean_files, files_of
from .arguments import OWNERS
from .forgetting import LOOK_S
from .lost import ThreadDeletedError, tell_lost
from .overlay import Overlay
from .saver_tables import has_tables
from .writes_left import awrites_left

if TYPE_CHECKING:
    from ....memory.subject_data.keeping import StoreKeeper

_Base: Any = BaseCheckpointSaver
_DEPTH = 12

LATE_S = 10.0
"""Seconds for which an erasure waits for a write that its caller waits for no longer."""


_REDIS_LISTS = 10_000
"""Checkpoints that Redis' saver lists where it is given no limit, and says nothing of the rest."""

_MOST_LISTED = 1_000_000
"""The most that Redis searches for at once: where a server allows less, it raises."""


_A_THREAD = "a thread that the audit trail has no name of"
_KEPT = (
    "{} is shared with another customer, and was kept: whose its words are cannot be told. "
    "--including-shared erases it for both"
)
_ERASED_FOR_BOTH = "{:,} threads in which another customer has written, too, are gone for both"


class CheckpointSubjectData:
    """
    The provider of one checkpointer: its threads.

    Args:
        client: The bare saver, sync or async.
        overlay: What waits for its database. None: nothing does.
    """

    store = "langgraph.checkpoint"
    title = "Conversations"
    unavailable = None

    def __init__(self, client: Any, overlay: Overlay | None = None) -> None:
        self._client = client
        self._overlay = overlay or Overlay()

    async def page(self, subject: DataSubject, after: Any | None = None) -> Page:
        """Return one thread of *subject*, as it stands."""
        threads = after if after is not None else await self._threads(subject)
        if not threads:
            return Page(())
        newest = await self._newest(threads[0])
        if newest is None:
            return Page((), threads[1:] or None)
        kept = not subject.including_shared and await self._is_shared(threads[0], subject)
        return Page((_record(threads[0], newest, is_shared=kept),), threads[1:] or None)

    async def _threads(self, subject: DataSubject) -> list[str]:
        """Return the ids of threads that may be *subject*'s, some of which may be gone."""
        found = dict.fromkeys(subject.runs)
        known = frozenset(subject.memory_ids.get(self.store, ()))
        if not _filters(self._client):
            names = id_forms(subject.customer)
            return list(found | dict.fromkeys(await self._compared(names, known)))
        for name, form in product(OWNERS, id_forms(subject.customer)):
            found |= dict.fromkeys(await self._listed(_any, {name: form}))
        if known:  # a look at all there is: what a run is called need not be its thread's id
            found |= dict.fromkeys(await self._listed(lambda each: each["checkpoint_id"] in known))
        return list(found)

    async def _listed(
        self, wanted: Callable[[dict[str, str]], bool], metadata: dict[str, str | int] | None = None
    ) -> list[str]:
        """Return the threads of the checkpoints with *metadata* that are *wanted*, by their ids."""
        rows = None if metadata else await checkpoints_in(self._client)
        if rows is not None:
            return [row["thread_id"] for row in rows if wanted(row)]
        if self._is_asynchronous:
            threads: list[str] = await run_in_client_loop(
                self._client, lambda: _all(self._client, metadata, wanted)
            )
            return threads
        found = (each.config["configurable"] for each in self._client.list(None, filter=metadata))
        return [each["thread_id"] for each in found if wanted(each)]

    async def _compared(self, names: Collection[Any], known: Collection[str]) -> list[str]:
        """Return the threads whose metadata has one of *names*, or that have a known checkpoint."""
        found = await self._checkpoints(None)
        if len(found) == _REDIS_LISTS:
            found = await self._checkpoints(None, limit=_MOST_LISTED)
        return [
            ids["thread_id"]
            for each in found
            if (ids := each.config["configurable"])["checkpoint_id"] in known
            or any(each.metadata.get(owner) in names for owner in OWNERS)
        ]

    async def _newest(self, thread: str) -> Any:
        return await self._call("get_tuple", {"configurable": {"thread_id": thread}})

    async def erase(self, subject: DataSubject) -> Erased:
        """Remove all threads of *subject*."""
        removed, shared = 0, list[str]()
        # Before the saver is asked, which may be away: what waits must not come after this.
        for thread in (*subject.runs, *self._overlay.threads_of(subject.customer)):
            if subject.including_shared or not subject.is_shared(thread, {}):
                self._drop(thread)
        for thread in await self._threads(subject):
            if await self._is_shared(thread, subject):
                shared.append(thread)
                if not subject.including_shared:
                    continue
            self._drop(thread)
            removed += await self._newest(thread) is not None
            # In any case: writes may be there without a checkpoint.
            await self._delete(thread)
        messages = (*_shared_thread_lines(shared, subject), *await clean_files(self._client))
        return Erased(removed, 0 if subject.including_shared else len(shared), messages)

    async def _is_shared(self, thread: str, subject: DataSubject) -> bool:
        """Return whether a thread is another customer's, too, by its metadata or the trail."""
        owners: dict[str, str | None] = {}
        for each in await self._checkpoints({"configurable": {"thread_id": thread}}):
            named = (id_text(each.metadata.get(name)) for name in OWNERS)
            owner = next((found for found in named if found is not None), None)
            owners[each.checkpoint["id"]] = None if owner is None else str(owner)
        return subject.is_shared(id_text(thread), owners)

    async def _checkpoints(self, config: Any, limit: int | None = None) -> list[Any]:
        if not self._is_asynchronous:
            return list(self._client.list(config, limit=limit))
        found: list[Any] = await run_in_client_loop(
            self._client, lambda: _listed(self._client.alist(config, limit=limit))
        )
        return found

    async def _delete(self, thread: str) -> None:
        """
        Delete a thread, and once more behind writes of it that the saver may still make.

        Raises:
            DeadlineExceededError: Such a write does not end.
        """
        until = time.monotonic() + LATE_S
        name = id_text(thread)
        before = self._overlay.at_work(name)
        await self._call("delete_thread", thread)
        while before & self._overlay.at_work(name):
            if time.monotonic() >= until:
                raise DeadlineExceededError(self.store, LATE_S)
            await asyncio.sleep(LOOK_S)
        if before:
            await self._call("delete_thread", thread)
        while await run_in_client_loop(self._client, lambda: awrites_left(self._client, name)):
            await self._call("delete_thread", thread)
        self._overlay.forget_clean(name)

    def _drop(self, thread: str) -> None:
        tell_lost(self._overlay.drop(id_text(thread)), ThreadDeletedError)

    async def _call(self, name: str, *args: Any) -> Any:
        if not self._is_asynchronous:
            return getattr(self._client, name)(*args)
        method = getattr(self._client, f"a{name}")
        return await run_in_client_loop(self._client, lambda: method(*args))

    def keeper(self) -> StoreKeeper:
        """See `KeepsRecords`."""
        from .keeper import ThreadKeeper  # noqa: PLC0415 - only where it is wanted

        return ThreadKeeper(self._client, is_asynchronous=self._is_asynchronous)

    @property
    def _is_asynchronous(self) -> bool:
        return loop_of(self._client) is not None or _lacks_synchronous(type(self._client))

    async def files(self) -> tuple[Path, ...]:
        """Return the files of a saver in SQLite."""
        return await files_of(self._client)


def _shared_thread_lines(shared: Collection[str], subject: DataSubject) -> tuple[str, ...]:
    if (
        subject.including_shared
    ):  # not which: a receipt has this, and their names may be the other's
        return (_ERASED_FOR_BOTH.format(len(shared)),) if shared else ()
    names = dict.fromkeys(subject.run_names.get(id_text(each), _A_THREAD) for each in shared)
    return tuple(_KEPT.format(each) for each in names)


async def _listed(found: AsyncIterable[Any]) -> list[Any]:
    return [each async for each in found]


def _filters(client: Any) -> bool:
    """Tell whether *client* is known to filter by any metadata. Redis' saver refuses most."""
    return isinstance(client, InMemorySaver) or has_tables(client)


def _any(_ids: dict[str, str]) -> bool:
    return True


async def _all(client: Any, metadata: Any, wanted: Callable[[dict[str, str]], bool]) -> list[str]:
    found = [each.config["configurable"] async for each in client.alist(None, filter=metadata)]
    return [each["thread_id"] for each in found if wanted(each)]


def _lacks_synchronous(kind: Any) -> bool:
    # Some have synchronous methods that say there are none, as AsyncValkeySaver has.
    return kind.get_tuple is _Base.get_tuple or kind.__name__.startswith("Async")


def _record(thread: str, newest: Any, *, is_shared: bool) -> SubjectRecord:
    checkpoint = newest.checkpoint
    content = None if is_shared else _plain(checkpoint.get("channel_values", {}), 0)
    return SubjectRecord(
        kind="thread",
        id=id_text(thread),  # one in memory has a number as it was given
        content=content,
        updated=checkpoint.get("ts"),
        is_own=False,  # a state quotes documents, which are in other people's threads too
        is_shared=is_shared,
    )


def _plain(value: Any, depth: int) -> Any:
    """Return a state as JSON types; of a message, its type and content."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if depth >= _DEPTH:
        return f"<{type(value).__name__}>"
    if is_dict(value):
        return {str(key): _plain(each, depth + 1) for key, each in value.items()}
    if is_sequence(value) or is_set(value):
        return [_plain(each, depth + 1) for each in value]
    if hasattr(value, "content") and hasattr(value, "type"):
        return {"type": value.type, "content": _plain(value.content, depth + 1)}
    fields = _fields(value)
    return f"<{type(value).__name__}>" if fields is None else _plain(fields, depth + 1)


def _fields(value: Any) -> dict[str, Any] | None:
    found = value.model_dump() if hasattr(value, "model_dump") else getattr(value, "__dict__", None)
    return found if is_dict(found) else None
