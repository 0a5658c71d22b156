"""The points in the collections of one client, for whoever lists, counts and removes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal
from qdrant_client.local.qdrant_local import QdrantLocal

from ...memory.subject_data.records import PAGE_SIZE
from ..toolkit.sqlite_cleaning import clean
from ..toolkit.sync_async import resolve
from ..toolkit.type_guards import is_dict
from .owner import named

ELSEWHERE = (
    "the Qdrant server keeps deleted points in its files until its optimizer has rewritten them, "
    "and in snapshots: these were not looked at"
)


class Points:
    """
    The points of one client that a filter finds, in one collection at a time.

    Args:
        client: A bare client, sync or async.
        lock: Held around each call, for clients that are not thread-safe.
    """

    def __init__(self, client: Any, lock: AbstractContextManager[Any] | None = None) -> None:
        self._client = client
        self._lock = lock or nullcontext()

    async def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return await resolve(getattr(self._client, name)(*args, **kwargs))

    async def collections(self) -> list[str]:
        """Return the names of all collections, sorted."""
        found = await self._call("get_collections")
        return sorted(each.name for each in found.collections)

    async def page(
        self, collection: str, wanted: models.Filter, after: Any | None = None
    ) -> tuple[list[Any], Any | None]:
        """Return the points after *after*, and the next *after*."""
        records, following = await self._call(
            "scroll", collection, scroll_filter=wanted, limit=PAGE_SIZE, offset=after
        )
        return records, following

    async def dimensions(self, collection: str) -> int | None:
        """Return the dimensions of the collection's vectors. None: they have names, or none."""
        found = await self._call("get_collection", collection)
        size: int | None = getattr(found.config.params.vectors, "size", None)
        return size

    async def count(self, collection: str) -> int:
        """Return how many points the collection has, as its service counts them."""
        return int((await self._call("count", collection, exact=False)).count)

    async def vector_bytes(self, collection: str) -> int:
        """Return the size of the dense vectors of a point, of four bytes a dimension."""
        vectors: Any = (await self._call("get_collection", collection)).config.params.vectors
        named: list[Any] = [*vectors.values()] if is_dict(vectors) else [vectors]
        return sum(4 * int(each.size) for each in named if each is not None)

    async def each(self, collection: str, wanted: models.Filter) -> AsyncIterator[Any]:
        """Yield all of them."""
        records, after = await self.page(collection, wanted)
        while records:
            for record in records:
                yield record
            records, after = await self.page(collection, wanted, after) if after else ([], None)

    async def point(self, collection: str, point_id: int | str) -> Any | None:
        """Return the point of that id. None: there is none."""
        # Asked first: a collection that is gone is an error to Qdrant, and an answer here.
        if collection not in await self.collections():
            return None
        found = await self._call("retrieve", collection, ids=[point_id])
        return found[0] if found else None

    async def remove(self, collection: str, wanted: models.Filter) -> int:
        """Remove them, and return how many they were."""
        # A deletion by filter answers with its status alone.
        counted = await self._call("count", collection, count_filter=wanted, exact=True)
        if counted.count:
            selector = models.FilterSelector(filter=wanted)
            # Waited for: without it the points are there when they are looked for again.
            await self._call("delete", collection, points_selector=selector, wait=True)
        return int(counted.count)

    @property
    def folder(self) -> Path | None:
        """Folder of a local client. None: its points are in memory or on a server."""
        local = self._local
        return Path(local.location) if local is not None and local.persistent else None

    def clean(self, collections: Iterable[str]) -> tuple[str, ...]:
        """
        Rewrite local files without deleted points.

        Returns:
            Notes for the person who asked.
        """
        local = self._local
        if local is None:
            return (ELSEWHERE,)
        with self._lock:
            stored = (local.collections[each].storage for each in collections)
            for each in stored:
                if each is not None:
                    clean(each.storage)
        return ()

    def close_local(self) -> None:
        """Close a local client: as the interpreter ends it no longer can, and says so."""
        local = self._local
        if local is not None:
            with self._lock:
                local.close()

    @property
    def is_loop_bound(self) -> bool:
        """Whether its connections belong to an event loop that cannot be told."""
        return isinstance(self._client, AsyncQdrantClient) and self._local is None

    @property
    def _local(self) -> QdrantLocal | AsyncQdrantLocal | None:
        found = getattr(self._client, "_client", None)
        return found if isinstance(found, (QdrantLocal, AsyncQdrantLocal)) else None


def owner_filter(keys: Iterable[str], customer: str) -> models.Filter:
    """Return the filter for points that name *customer* under one of *keys*."""
    return models.Filter(should=[named(key, customer) for key in sorted(keys)])
