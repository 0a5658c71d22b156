"""Subject data in LangGraph's store: the items in namespaces that name the person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph.store.base import ListNamespacesOp, MatchCondition, PutOp, SearchOp

from ....memory.subject_data.records import PAGE_SIZE, DataSubject, Erased, Page, SubjectRecord
from ...toolkit.sync_async import loop_of, run_in_client_loop
from ..files import clean_files, execute, files_of
from .addresses import ANY

_DELETE_VECTORS = "DELETE FROM store_vectors WHERE prefix = ?"
_HAS_VECTORS = "SELECT 1 FROM sqlite_master WHERE name = 'store_vectors'"


class StoreSubjectData:
    """
    The provider of one store: its items.

    Args:
        client: The bare store, sync or async.
        customer_at: Index of the namespace label that is the customer's id.
    """

    store = "langgraph.store"
    title = "Notes"

    def __init__(self, client: Any, customer_at: int | None) -> None:
        self._client = client
        self._customer_at = customer_at

    @property
    def unavailable(self) -> str | None:
        """Reason that no item can be attributed; None if the customer's label is known."""
        if self._customer_at is None:
            return "wrapped without customer_at: no namespace says whose its items are"
        return None

    async def page(self, subject: DataSubject, after: Any | None = None) -> Page:
        """Return items of *subject*, namespace by namespace."""
        place, offset = after or (0, 0)
        namespace = await self._namespace(subject, place)
        if namespace is None:
            return Page(())
        found = await self._search(namespace, offset)
        records = tuple(_record(each) for each in found if each.namespace == namespace)
        is_last = len(found) < PAGE_SIZE
        return Page(records, (place + 1, 0) if is_last else (place, offset + PAGE_SIZE))

    async def _namespace(self, subject: DataSubject, place: int) -> tuple[str, ...] | None:
        """Return the namespace at *place* among those that name *subject*."""
        if self._customer_at is None:
            return None
        path = (*[ANY] * self._customer_at, subject.customer)
        condition = MatchCondition("prefix", path)
        found = await self._batch(
            ListNamespacesOp(match_conditions=(condition,), limit=1, offset=place)
        )
        return found[0] if found else None

    async def _search(self, namespace: tuple[str, ...], offset: int) -> list[Any]:
        # Not refreshed: being asked about is no reason to live longer.
        found: list[Any] = await self._batch(
            SearchOp(namespace, limit=PAGE_SIZE, offset=offset, refresh_ttl=False)
        )
        return found

    async def erase(self, subject: DataSubject) -> Erased:
        """Remove all items of *subject*."""
        removed, place = 0, 0
        while (namespace := await self._namespace(subject, place)) is not None:
            removed += await self._empty(namespace)
            # A store in memory goes on listing a namespace that is empty.
            place += await self._namespace(subject, place) == namespace
        return Erased(removed, messages=await clean_files(self._client))

    async def _empty(self, namespace: tuple[str, ...]) -> int:
        removed, offset = 0, 0
        while found := await self._search(namespace, offset):
            mine = [each for each in found if each.namespace == namespace]
            if mine:
                await self._batch(*(PutOp(namespace, each.key, None) for each in mine))
            removed += len(mine)
            # What is in namespaces below this one stays, and is passed over.
            offset += len(found) - len(mine)
        await self._empty_vectors(namespace)
        return removed

    async def _empty_vectors(self, namespace: tuple[str, ...]) -> None:
        """Remove embeddings: SQLite's foreign keys are off, so deleting an item leaves its own."""
        if await execute(self._client, _HAS_VECTORS):
            await execute(self._client, _DELETE_VECTORS, ".".join(namespace))

    async def _batch(self, *ops: Any) -> Any:
        if loop_of(self._client) is None:
            answers = self._client.batch(ops)
        else:
            answers = await run_in_client_loop(self._client, lambda: self._client.abatch(ops))
        return answers[0]

    async def files(self) -> tuple[Path, ...]:
        """Return the files of a store in SQLite."""
        return await files_of(self._client)


def _record(item: Any) -> SubjectRecord:
    return SubjectRecord(
        kind="item",
        id=item.key,
        collection=".".join(item.namespace),
        content=item.value,
        created=item.created_at.isoformat(),
        updated=item.updated_at.isoformat(),
    )
