"""What Qdrant holds about a person: the points whose payload names them under the owner's key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from qdrant_client import models
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal
from qdrant_client.local.qdrant_local import QdrantLocal

from ..memory.holdings import PAGE, Forgotten, Held, Page, Person
from .colours import settled
from .sqlite_cleaning import clean

ELSEWHERE = (
    "the Qdrant server keeps deleted points in its files until its optimizer has rewritten them, "
    "and in snapshots: these were not looked at"
)


class Points:
    """
    The points of one client that a filter finds, in one collection at a time.

    Args:
        client: A bare client, of either colour.
        turns: Held around each call, for clients that are not thread-safe.
    """

    def __init__(self, client: Any, turns: AbstractContextManager[Any] | None = None) -> None:
        self._client = client
        self._turns = turns or nullcontext()

    async def _ask(self, name: str, *args: Any, **kwargs: Any) -> Any:
        with self._turns:
            return await settled(getattr(self._client, name)(*args, **kwargs))

    async def collections(self) -> list[str]:
        """Return the names of all collections, sorted."""
        found = await self._ask("get_collections")
        return sorted(each.name for each in found.collections)

    async def page(
        self, collection: str, wanted: models.Filter, after: Any | None = None
    ) -> tuple[list[Any], Any | None]:
        """Return the points behind *after*, and what to ask for those behind them with."""
        records, following = await self._ask(
            "scroll", collection, scroll_filter=wanted, limit=PAGE, offset=after
        )
        return records, following

    async def each(self, collection: str, wanted: models.Filter) -> AsyncIterator[Any]:
        """Yield all of them."""
        records, after = await self.page(collection, wanted)
        while records:
            for record in records:
                yield record
            records, after = await self.page(collection, wanted, after) if after else ([], None)

    async def remove(self, collection: str, wanted: models.Filter) -> int:
        """Remove them, and return how many they were."""
        counted = await self._ask("count", collection, count_filter=wanted, exact=True)
        if counted.count:
            selector = models.FilterSelector(filter=wanted)
            await self._ask("delete", collection, points_selector=selector, wait=True)
        return int(counted.count)

    @property
    def folder(self) -> Path | None:
        """Where a local client keeps its points. None: in memory, or on a server."""
        local = self._local
        return Path(local.location) if local is not None and local.persistent else None

    def clean(self, collections: Iterable[str]) -> tuple[str, ...]:
        """
        Have local files written anew without what was removed.

        Returns:
            What a person should know.
        """
        local = self._local
        if local is None:
            return (ELSEWHERE,)
        with self._turns:
            stored = (local.collections[each].storage for each in collections)
            for each in stored:
                if each is not None:
                    clean(each.storage)
        return ()

    @property
    def _local(self) -> QdrantLocal | AsyncQdrantLocal | None:
        found = getattr(self._client, "_client", None)
        return found if isinstance(found, (QdrantLocal, AsyncQdrantLocal)) else None


def named(keys: Iterable[str], customer: str) -> models.Filter:
    """Return the filter for points that name *customer* under one of *keys*."""
    match = models.MatchValue(value=customer)
    return models.Filter(
        should=[models.FieldCondition(key=key, match=match) for key in sorted(keys)]
    )


class QdrantHolding:
    """
    What one client's collections hold.

    Args:
        client: The bare client, of either colour.
        owner_keys: Payload keys that hold an owner's id.
        turns: Held around each call, for clients that are not thread-safe.
    """

    store = "qdrant"

    def __init__(
        self,
        client: Any,
        owner_keys: Iterable[str] = (),
        *,
        turns: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.owner_keys = set(owner_keys)
        self._points = Points(client, turns)

    @property
    def unasked(self) -> str | None:
        """Why nothing can be asked; None where an owner's key is known."""
        return None if self.owner_keys else "wrapped without owner_key: no point says whose it is"

    async def page(self, person: Person, after: Any | None = None) -> Page:
        """Return points of *person*, collection by collection."""
        place, offset = after or (0, None)
        collections = await self._points.collections() if self.owner_keys else []
        if place >= len(collections):
            return Page(())
        collection, wanted = collections[place], named(self.owner_keys, person.customer)
        records, following = await self._points.page(collection, wanted, offset)
        held = tuple(
            Held(kind="point", id=str(each.id), collection=collection, content=each.payload)
            for each in records
        )
        return Page(held, (place, following) if following is not None else (place + 1, None))

    async def forget(self, person: Person) -> Forgotten:
        """Remove all points of *person*."""
        collections = await self._points.collections() if self.owner_keys else []
        wanted = named(self.owner_keys, person.customer)
        removed = [await self._points.remove(each, wanted) for each in collections]
        return Forgotten(sum(removed), messages=self._points.clean(collections))

    async def files(self) -> tuple[Path, ...]:
        """Return the folder of a local client."""
        folder = self._points.folder
        return () if folder is None else (folder,)
