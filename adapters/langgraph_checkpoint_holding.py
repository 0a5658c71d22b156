"""
What a checkpointer holds about a person: their threads.

A thread's id says nothing of whose it is. The audit trail does, since it has the checkpoints that
were written in each customer's name; so does the metadata of those whose config had ``user_id``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeGuard

from langgraph.checkpoint.base import BaseCheckpointSaver

from ..memory.holdings import Forgotten, Held, Page, Person
from .colours import in_loop_of, loop_of
from .langgraph_checkpoint_arguments import OWNERS, is_dict, is_sequence
from .langgraph_files import checkpoints_in, cleaned, files_of

_Base: Any = BaseCheckpointSaver
_DEPTH = 12


class CheckpointHolding:
    """
    What one checkpointer holds.

    Args:
        client: The bare saver, of either colour.
    """

    store = "langgraph.checkpoint"
    unasked = None

    def __init__(self, client: Any) -> None:
        self._client = client

    async def page(self, person: Person, after: Any | None = None) -> Page:
        """Return one thread of *person*, as it stands."""
        threads = after if after is not None else await self._threads(person)
        if not threads:
            return Page(())
        newest = await self._newest(threads[0])
        return Page(() if newest is None else (_held(threads[0], newest),), threads[1:] or None)

    async def _threads(self, person: Person) -> list[str]:
        """Return the ids of threads that may be *person*'s, some of which may be gone."""
        found = dict.fromkeys(person.runs)
        for name in OWNERS:
            found |= dict.fromkeys(await self._listed(_any, {name: person.customer}))
        known = frozenset(person.memory_ids.get(self.store, ()))
        if known:  # a look at all there is: what a run is called need not be its thread's id
            found |= dict.fromkeys(await self._listed(lambda each: each["checkpoint_id"] in known))
        return list(found)

    async def _listed(
        self, wanted: Callable[[dict[str, str]], bool], metadata: dict[str, str] | None = None
    ) -> list[str]:
        """Return the threads of the checkpoints with *metadata* that are *wanted*, by their ids."""
        rows = None if metadata else await checkpoints_in(self._client)
        if rows is not None:
            return [row["thread_id"] for row in rows if wanted(row)]
        if self._is_asynchronous:
            threads: list[str] = await in_loop_of(
                self._client, lambda: _all(self._client, metadata, wanted)
            )
            return threads
        found = (each.config["configurable"] for each in self._client.list(None, filter=metadata))
        return [each["thread_id"] for each in found if wanted(each)]

    async def _newest(self, thread: str) -> Any:
        return await self._ask("get_tuple", {"configurable": {"thread_id": thread}})

    async def forget(self, person: Person) -> Forgotten:
        """Remove all threads of *person*."""
        removed = 0
        for thread in await self._threads(person):
            removed += await self._newest(thread) is not None
            # In any case: writes may be there without a checkpoint.
            await self._ask("delete_thread", thread)
        return Forgotten(removed, messages=await cleaned(self._client))

    async def _ask(self, name: str, *args: Any) -> Any:
        if not self._is_asynchronous:
            return getattr(self._client, name)(*args)
        method = getattr(self._client, f"a{name}")
        return await in_loop_of(self._client, lambda: method(*args))

    @property
    def _is_asynchronous(self) -> bool:
        return loop_of(self._client) is not None or _lacks_synchronous(type(self._client))

    async def files(self) -> tuple[Path, ...]:
        """Return the files of a saver in SQLite."""
        return await files_of(self._client)


def _any(_ids: dict[str, str]) -> bool:
    return True


async def _all(client: Any, metadata: Any, wanted: Callable[[dict[str, str]], bool]) -> list[str]:
    found = [each.config["configurable"] async for each in client.alist(None, filter=metadata)]
    return [each["thread_id"] for each in found if wanted(each)]


def _lacks_synchronous(kind: Any) -> bool:
    return kind.get_tuple is _Base.get_tuple


def _held(thread: str, newest: Any) -> Held:
    checkpoint = newest.checkpoint
    return Held(
        kind="thread",
        id=thread,
        content=_plain(checkpoint.get("channel_values", {}), 0),
        updated=checkpoint.get("ts"),
    )


def _plain(value: Any, depth: int) -> Any:
    """Return what of a state can be said in JSON; of a message, its type and content."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if depth >= _DEPTH:
        return f"<{type(value).__name__}>"
    if is_dict(value):
        return {str(key): _plain(each, depth + 1) for key, each in value.items()}
    if is_sequence(value) or _is_set(value):
        return [_plain(each, depth + 1) for each in value]
    if hasattr(value, "content") and hasattr(value, "type"):
        return {"type": value.type, "content": _plain(value.content, depth + 1)}
    fields = _fields(value)
    return f"<{type(value).__name__}>" if fields is None else _plain(fields, depth + 1)


def _fields(value: Any) -> dict[str, Any] | None:
    found = value.model_dump() if hasattr(value, "model_dump") else getattr(value, "__dict__", None)
    return found if is_dict(found) else None


def _is_set(value: Any) -> TypeGuard[Collection[Any]]:
    return isinstance(value, (set, frozenset))
