"""The items of a LangGraph store, for growth and retention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from langgraph.store.base import GetOp, PutOp, SearchOp

from ....memory.context import context
from ....memory.subject_data.keeping import (
    KeptRecord,
    RecordCount,
    RecordKey,
    RecordPage,
    json_bytes,
)
from ....memory.subject_data.records import PAGE_SIZE
from ...toolkit.sync_async import loop_of, run_in_client_loop
from ..files import clean_files, sizes

Namespace: TypeAlias = tuple[str, ...]


class ItemKeeper:
    """
    The `StoreKeeper` of one store.

    Args:
        client: The bare store, sync or async.
        customer_at: Index of the namespace label that is the customer's id. None: none is.
        namespaces: Returns all namespaces.
    """

    def __init__(
        self,
        client: Any,
        customer_at: int | None,
        namespaces: Callable[[], Awaitable[list[Namespace]]],
    ) -> None:
        self._client = client
        self._namespaces = namespaces
        self._customer_at = customer_at
        self.is_loop_bound = False

    async def measure(self, most: int) -> Sequence[RecordCount]:
        """Return the items: all of a store in SQLite or memory, and a page of any other."""
        page = await self.page()
        ids = tuple(each.id for each in page.records[:most])
        if (found := await sizes(self._client, "store", "length(value)")) is not None:
            return [RecordCount(kind="item", ids=ids, **found._asdict())]
        rows, size, is_cut = len(page.records), _bytes(page.records), page.after is not None
        while page.after is not None and rows < most:
            page = await self.page(page.after)
            rows, size, is_cut = (
                rows + len(page.records),
                size + _bytes(page.records),
                bool(page.after),
            )
        return [RecordCount(kind="item", rows=rows, bytes=size, is_sampled=is_cut, ids=ids)]

    async def page(self, after: Any | None = None) -> RecordPage:
        """Return items, namespace by namespace."""
        namespaces, offset = after or (await self._namespaces(), 0)
        if not namespaces:
            return RecordPage(())
        here: Namespace = namespaces[0]
        # Not refreshed: being looked at is no reason to live longer.
        wanted = SearchOp(here, limit=PAGE_SIZE, offset=offset, refresh_ttl=False)
        (found,) = await self._batch(wanted)
        records = tuple(self._record(each) for each in found if each.namespace == here)
        if len(found) == PAGE_SIZE:
            return RecordPage(records, (namespaces, offset + PAGE_SIZE))
        return RecordPage(records, (namespaces[1:], 0) if namespaces[1:] else None)

    def _record(self, item: Any) -> KeptRecord:
        at = self._customer_at
        owner = None if at is None else next(iter(item.namespace[at : at + 1]), None)
        return KeptRecord(
            kind="item",
            id=item.key,
            collection=".".join(item.namespace),
            owner=owner,
            stated_us=int(item.updated_at.timestamp() * 1_000_000),
            size_bytes=json_bytes(item.value),
            trail_ids=(item.key,),
            place=item.namespace,
        )

    async def spared(self, _due: Sequence[KeptRecord]) -> Mapping[RecordKey, str]:
        """Return none: no item needs another one."""
        return {}

    async def remove(self, client: Any, records: Sequence[KeptRecord]) -> None:
        """Delete items, those of one customer in one call."""
        by_owner: defaultdict[str | None, list[KeptRecord]] = defaultdict(list)
        for each in records:
            by_owner[each.owner].append(each)
        for owner, theirs in by_owner.items():
            for start in range(0, len(theirs), PAGE_SIZE):
                part = theirs[start : start + PAGE_SIZE]
                ops = [PutOp(each.place, each.id, None) for each in part]
                with context(customer=owner, purpose="retention"):
                    await _asked(client, self._client, ops)

    async def left(self, records: Sequence[KeptRecord]) -> Sequence[KeptRecord]:
        """Return those that are found by namespace and key."""
        left: list[KeptRecord] = []
        for start in range(0, len(records), PAGE_SIZE):
            part = records[start : start + PAGE_SIZE]
            ops = [GetOp(each.place, each.id, refresh_ttl=False) for each in part]
            answers = await self._batch(*ops)
            left += [each for each, found in zip(part, answers, strict=True) if found is not None]
        return left

    async def clean(self) -> Sequence[str]:
        """Rewrite a file of SQLite."""
        return await clean_files(self._client)

    async def _batch(self, *ops: Any) -> Any:
        return await _asked(self._client, self._client, ops)


async def _asked(client: Any, bare: Any, ops: Sequence[Any]) -> Any:
    if loop_of(bare) is None:
        return client.batch(ops)
    return await run_in_client_loop(bare, lambda: client.abatch(ops))


def _bytes(records: Sequence[KeptRecord]) -> int:
    return sum(each.size_bytes or 0 for each in records)
