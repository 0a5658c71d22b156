"""
The threads of a checkpointer, for growth and retention.

A thread goes by the saver's own ``delete_thread``. For single states savers have no method that
knows delta channels, so they are removed from the tables of the savers in SQLite and in PostgreSQL,
as a guarded ``prune``; of any other saver they stay, and this is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

from ....memory.api import Deletes, Operation, Summary, forget
from ....memory.context import context
from ....memory.subject_data.keeping import KeptRecord, RecordCount, RecordKey, RecordPage
from ....telemetry.event.spelling import id_text
from ...toolkit.proxy import guard_of
from ...toolkit.sync_async import loop_of, run_in_client_loop
from ..backends import is_thread_bound
from ..files import clean_files
from .arguments import OWNERS, scope, verbatim
from .keep_set import SavedState, StateKey, ThreadStatus, needed, saved_state, status_of
from .saver_tables import (
    aprune,
    has_tables,
    prune,
    table_sizes,
    thread_ids,
)

_AT_ONCE = 20
"""Threads of a page."""


_NOT_HERE = "single states of this saver cannot be removed: only all of a thread can"
_CHANGED = "its thread was written to meanwhile"
_NOT_DONE = "its thread is {}"

_PRUNE: Final = forget(
    "prune",
    "delete_checkpoint",
    deletes=Deletes.IDS,
    scope=scope,
    unconfined="retention removes states by their age, whosever they are",
    redact=verbatim,
    summary=lambda _answer, arguments: Summary(memory_ids=tuple(arguments["checkpoint_ids"])),
)


class _Thread(NamedTuple):
    """A thread as it was listed: its id as the saver has it, its states, and its customer."""

    raw: Any
    states: tuple[SavedState, ...]
    owner: str | None
    written: Mapping[StateKey, int | None]

    @property
    def status(self) -> ThreadStatus:
        return status_of(self.states)


class ThreadKeeper:
    """
    The `StoreKeeper` of one checkpointer.

    Args:
        client: The bare saver, sync or async.
    """

    def __init__(self, client: Any, *, is_asynchronous: bool) -> None:
        self._client = client
        self._is_asynchronous = is_asynchronous
        self.is_loop_bound = is_asynchronous and loop_of(client) is None
        self._for_others: dict[Any, frozenset[StateKey]] = {}

    async def measure(self, most: int) -> Sequence[RecordCount]:
        """Return states and writes by the database's own count, and the status of some threads."""
        counts = await table_sizes(self._client) or []
        threads = await self._some_threads(most)
        found: defaultdict[str, list[str]] = defaultdict(list)
        for each in threads[:most]:
            newest = await self._newest(each)
            if newest is not None:
                found[saved_state(newest).status.value].append(newest.checkpoint["id"])
        # Of more threads than are looked at, these are some.
        counts += [
            RecordCount(
                kind="thread",
                rows=len(ids),
                is_sampled=len(threads) > most,
                status=status,
                ids=tuple(ids),
            )
            for status, ids in found.items()
        ]
        return counts

    async def _some_threads(self, most: int) -> list[Any]:
        if (known := await thread_ids(self._client, most + 1)) is not None:
            return known
        listed = await self._listed(None, limit=most)
        return list(dict.fromkeys(each.config["configurable"]["thread_id"] for each in listed))

    async def _newest(self, raw: Any) -> Any:
        config = {"configurable": {"thread_id": raw}}
        if not self._is_asynchronous:
            return self._client.get_tuple(config)
        return await run_in_client_loop(self._client, lambda: self._client.aget_tuple(config))

    async def page(self, after: Any | None = None) -> RecordPage:
        """Return threads, each followed by its states but the newest of each namespace."""
        threads = after if after is not None else await self._threads()
        records: list[KeptRecord] = []
        unreadable: list[str] = []
        for raw in threads[:_AT_ONCE]:
            try:
                records += _records(await self._thread(raw))
            except Exception as exc:  # noqa: BLE001 - of whatever kind: this thread stays
                unreadable.append(f"a thread cannot be read: {type(exc).__name__}")
        return RecordPage(tuple(records), threads[_AT_ONCE:] or None, tuple(unreadable))

    async def _threads(self) -> list[Any]:
        if (known := await thread_ids(self._client)) is not None:
            return known
        listed = await self._listed(None)
        return list(dict.fromkeys(each.config["configurable"]["thread_id"] for each in listed))

    async def _listed(self, config: Any, limit: int | None = None) -> list[Any]:
        if not self._is_asynchronous:
            return list(self._client.list(config, limit=limit))

        async def listed() -> list[Any]:
            return [each async for each in self._client.alist(config, limit=limit)]

        found: list[Any] = await run_in_client_loop(self._client, listed)
        return found

    async def _thread(self, raw: Any) -> _Thread:
        found = await self._listed({"configurable": {"thread_id": raw}})
        known: list[Mapping[str, Any]] = [each.metadata or {} for each in found]
        named = (id_text(each.get(name)) for each in known for name in OWNERS)
        owners = {str(each) for each in named if each is not None}
        return _Thread(
            raw,
            tuple(sorted(map(saved_state, found), key=attrgetter("key"), reverse=True)),
            owners.pop() if len(owners) == 1 else None,
            {state.key: _moment_us(each) for each in found for state in [saved_state(each)]},
        )

    async def spared(self, due: Sequence[KeptRecord]) -> Mapping[RecordKey, str]:
        """Return the states that others need, and all of threads that are not done."""
        stays: dict[RecordKey, str] = {}
        for raw, records in _by_thread(due):
            thread = await self._thread(raw)
            stay = _stays(thread, records, may_prune=has_tables(self._client))
            stays.update((each.key, why) for each, why in stay)
            self._for_others[raw] = frozenset(
                each.place[1] for each, _why in stay if each.kind == "checkpoint"
            )
        return stays

    async def remove(self, client: Any, records: Sequence[KeptRecord]) -> None:
        """Remove threads and states that may still go; what changed meanwhile stays."""
        for raw, due in _by_thread(records):
            thread = await self._thread(raw)
            # A state that stays for others' sake alone need not be whole itself.
            others = self._for_others.get(raw, frozenset())
            stay = _stays(thread, due, others, may_prune=has_tables(self._client))
            stays = {each.key for each, _why in stay}
            going = [each for each in due if each.key not in stays]
            if not going:
                continue
            with context(customer=thread.owner, purpose="retention"):
                if any(each.kind == "thread" for each in going):
                    await self._delete(client, raw)
                else:
                    await self._prune(client, thread, [each.place[1] for each in going])

    async def _delete(self, client: Any, raw: Any) -> None:
        if not self._is_asynchronous:
            client.delete_thread(raw)
        else:
            await run_in_client_loop(self._client, lambda: client.adelete_thread(raw))

    async def _prune(self, client: Any, thread: _Thread, going: Sequence[StateKey]) -> None:
        guard = guard_of(client)
        if guard is None:
            raise TypeError("the checkpointer is not guarded")
        ids = [state for _namespace, state in going]
        operation = Operation(_PRUNE, {"thread_id": thread.raw, "checkpoint_ids": ids})
        before = {each.key for each in thread.states}
        if self._is_asynchronous:
            removed = partial(aprune, self._client, thread.raw, going, before)
            call = partial(guard.acall, operation, lambda _arguments: removed())
            await run_in_client_loop(self._client, call)
            return
        remove = partial(prune, self._client, thread.raw, going, before)
        guard.call(operation, lambda _: remove(), inline=is_thread_bound(self._client))

    async def left(self, records: Sequence[KeptRecord]) -> Sequence[KeptRecord]:
        """Return those that a listing has anew."""
        left: list[KeptRecord] = []
        for raw, looked_for in _by_thread(records):
            present = {each.key for each in (await self._thread(raw)).states}
            left += [
                each
                for each in looked_for
                if (present if each.kind == "thread" else each.place[1] in present)
            ]
        return left

    async def clean(self) -> Sequence[str]:
        """Rewrite a file of SQLite."""
        return await clean_files(self._client)


def _records(thread: _Thread) -> list[KeptRecord]:
    if not thread.states:
        return []
    status, name = thread.status.value, str(id_text(thread.raw))
    moments = [each for each in thread.written.values() if each is not None]
    common: dict[str, Any] = {"owner": thread.owner, "status": status, "thread": name}
    records = [
        KeptRecord(
            kind="thread",
            id=name,
            stated_us=max(moments, default=None),
            trail_ids=tuple(dict.fromkeys(each.key[1] for each in thread.states)),
            place=(thread.raw, None),
            **common,
        )
    ]
    for namespace, states in groupby(thread.states, key=lambda each: each.key[0]):
        records += [
            KeptRecord(
                kind="checkpoint",
                id=each.key[1],
                collection=f"{name}/{namespace}",
                stated_us=thread.written[each.key],
                trail_ids=(each.key[1],),
                rank=rank,
                place=(thread.raw, each.key),
                **common,
            )
            for rank, each in enumerate(states)
        ]
    return records


def _by_thread(records: Iterable[KeptRecord]) -> Iterable[tuple[Any, list[KeptRecord]]]:
    found: dict[Any, list[KeptRecord]] = {}
    for each in records:
        found.setdefault(each.place[0], []).append(each)
    return found.items()


def _stays(
    thread: _Thread,
    due: Sequence[KeptRecord],
    for_others: frozenset[StateKey] = frozenset(),
    *,
    may_prune: bool,
) -> list[tuple[KeptRecord, str]]:
    """Return those of *due* that must stay, each with why; *for_others* were due as well."""
    whole = [each for each in due if each.kind == "thread"]
    known = set[str]().union(*(each.trail_ids for each in whole))
    if whole and any(each.key[1] not in known for each in thread.states):
        return [(each, _CHANGED) for each in due]
    # A task that failed may be tried again: whether the thread goes all the same is for its owner.
    allowed = {ThreadStatus.DONE, ThreadStatus.FAILED} if whole else {ThreadStatus.DONE}
    if thread.states and thread.status not in allowed:
        return [(each, _NOT_DONE.format(thread.status.value)) for each in due]
    if whole:
        return []
    if not may_prune:
        return [(each, _NOT_HERE) for each in due]
    stays = needed(thread.states, for_others | {each.place[1] for each in due})
    return [(each, stays[each.place[1]]) for each in due if each.place[1] in stays]


def _moment_us(found: Any) -> int | None:
    try:
        moment = datetime.fromisoformat(str(found.checkpoint.get("ts")))
    except ValueError:
        return None
    return int(moment.timestamp() * 1_000_000) if moment.tzinfo else None
