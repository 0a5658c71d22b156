"""What LangGraph's store holds about a person: the items in namespaces that name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph.store.base import ListNamespacesOp, MatchCondition, PutOp, SearchOp

from ..memory.holdings import PAGE, Forgotten, Held, Page, Person
from .colours import in_loop_of, loop_of
from .langgraph_addresses import ANY
from .langgraph_files import cleaned, execute, files_of

_FORGET_VECTORS = "DELETE FROM store_vectors WHERE prefix = ?"
_HAS_VECTORS = "SELECT 1 FROM sqlite_master WHERE name = 'store_vectors'"


class StoreHolding:
    """
    What one store holds.

    Args:
        client: The bare store, of either colour.
        customer_at: Index of the namespace label that is the customer's id.
    """

    store = "langgraph.store"

    def __init__(self, client: Any, customer_at: int | None) -> None:
        self._client = client
        self._customer_at = customer_at

    @property
    def unasked(self) -> str | None:
        """Why nothing can be asked; None where it is known which label is the customer's."""
        if self._customer_at is None:
            return "wrapped without customer_at: no namespace says whose its items are"
        return None

    async def page(self, person: Person, after: Any | None = None) -> Page:
        """Return items of *person*, namespace by namespace."""
        place, offset = after or (0, 0)
        namespace = await self._namespace(person, place)
        if namespace is None:
            return Page(())
        found = await self._search(namespace, offset)
        held = tuple(_held(each) for each in found if each.namespace == namespace)
        return Page(held, (place, offset + PAGE) if len(found) == PAGE else (place + 1, 0))

    async def _namespace(self, person: Person, place: int) -> tuple[str, ...] | None:
        """Return the namespace at *place* among those that name *person*."""
        if self._customer_at is None:
            return None
        path = (*[ANY] * self._customer_at, person.customer)
        condition = MatchCondition("prefix", path)
        found = await self._ask(
            ListNamespacesOp(match_conditions=(condition,), limit=1, offset=place)
        )
        return found[0] if found else None

    async def _search(self, namespace: tuple[str, ...], offset: int) -> list[Any]:
        # Not refreshed: being asked about is no reason to live longer.
        found: list[Any] = await self._ask(
            SearchOp(namespace, limit=PAGE, offset=offset, refresh_ttl=False)
        )
        return found

    async def forget(self, person: Person) -> Forgotten:
        """Remove all items of *person*."""
        removed, place = 0, 0
        while (namespace := await self._namespace(person, place)) is not None:
            removed += await self._empty(namespace)
            # A store in memory goes on listing a namespace that is empty.
            place += await self._namespace(person, place) == namespace
        return Forgotten(removed, messages=await cleaned(self._client))

    async def _empty(self, namespace: tuple[str, ...]) -> int:
        removed, offset = 0, 0
        while found := await self._search(namespace, offset):
            mine = [each for each in found if each.namespace == namespace]
            if mine:
                await self._ask(*(PutOp(namespace, each.key, None) for each in mine))
            removed += len(mine)
            # What is in namespaces below this one stays, and is passed over.
            offset += len(found) - len(mine)
        await self._empty_vectors(namespace)
        return removed

    async def _empty_vectors(self, namespace: tuple[str, ...]) -> None:
        """Remove embeddings: SQLite's foreign keys are off, so deleting an item leaves its own."""
        if await execute(self._client, _HAS_VECTORS):
            await execute(self._client, _FORGET_VECTORS, ".".join(namespace))

    async def _ask(self, *ops: Any) -> Any:
        if loop_of(self._client) is None:
            answers = self._client.batch(ops)
        else:
            answers = await in_loop_of(self._client, lambda: self._client.abatch(ops))
        return answers[0]

    async def files(self) -> tuple[Path, ...]:
        """Return the files of a store in SQLite."""
        return await files_of(self._client)


def _held(item: Any) -> Held:
    return Held(
        kind="item",
        id=item.key,
        collection=".".join(item.namespace),
        content=item.value,
        created=item.created_at.isoformat(),
        updated=item.updated_at.isoformat(),
    )
