"""Subject data in Qdrant: the points whose payload names the person under the owner's key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from qdrant_client import models
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal
from qdrant_client.local.qdrant_local import QdrantLocal

from ...memory.subject_data.records import (
    PAGE_SIZE,
    DataSubject,
    Erased,
    LoggedMemory,
    Page,
    StoredMemory,
    SubjectRecord,
)
from ...telemetry.event.spelling import id_text
from ..toolkit.public import KnownPublic
from ..toolkit.sqlite_cleaning import clean
from ..toolkit.sync_async import resolve
from .owner import named, value_at

UNTOLD = (
    "wrapped without owner_key: no point says whose it is. Wrap it with "
    'scope.qdrant(client, owner_key="customer_id"), or with public=True where it holds '
    "nobody's personal data, public={...} where some collections do"
)
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
    def _local(self) -> QdrantLocal | AsyncQdrantLocal | None:
        found = getattr(self._client, "_client", None)
        return found if isinstance(found, (QdrantLocal, AsyncQdrantLocal)) else None


def owner_filter(keys: Iterable[str], customer: str) -> models.Filter:
    """Return the filter for points that name *customer* under one of *keys*."""
    return models.Filter(should=[named(key, customer) for key in sorted(keys)])


class QdrantSubjectData:
    """
    The provider of one client: the points in its collections.

    Args:
        client: The bare client, sync or async.
        owner_keys: Payload keys that hold an owner's id.
        lock: Held around each call, for clients that are not thread-safe.
        public: Its points are nobody's, or those in collections of these names.
    """

    store = "qdrant"
    title = "Documents"

    def __init__(
        self,
        client: Any,
        owner_keys: Iterable[str] = (),
        *,
        lock: AbstractContextManager[Any] | None = None,
        public: KnownPublic = False,
    ) -> None:
        self._public = public
        self.owner_keys = set(owner_keys)
        self._points = Points(client, lock)

    @property
    def unavailable(self) -> str | None:
        """Reason that no point can be attributed; None if an owner's key is known, or none is."""
        return None if self.owner_keys or self._public is True else UNTOLD

    async def _owned(self) -> list[str]:
        """Return the collections whose points say whose they are."""
        found = await self._points.collections() if self.owner_keys else []
        public = self._public
        return found if isinstance(public, bool) else [each for each in found if each not in public]

    async def page(self, subject: DataSubject, after: Any | None = None) -> Page:
        """Return points of *subject*, collection by collection."""
        place, offset = after or (0, None)
        collections = await self._owned()
        if place >= len(collections):
            return Page(())
        collection, wanted = collections[place], owner_filter(self.owner_keys, subject.customer)
        records, following = await self._points.page(collection, wanted, offset)
        found = tuple(
            SubjectRecord(
                kind="point", id=str(each.id), collection=collection, content=each.payload
            )
            for each in records
        )
        # An offset of 0 is a point's id, and no end.
        return Page(found, (place, following) if following is not None else (place + 1, None))

    async def erase(self, subject: DataSubject) -> Erased:
        """Remove all points of *subject*."""
        collections = await self._owned()
        wanted = owner_filter(self.owner_keys, subject.customer)
        removed = [await self._points.remove(each, wanted) for each in collections]
        return Erased(sum(removed), messages=self._points.clean(collections))

    async def find(self, memory: LoggedMemory) -> StoredMemory | None:
        """See `MemoryRemover.find`: an id is a number or a UUID."""
        given, collection = memory.memory_id, memory.collection or ""
        # The trail has ids as text, where Qdrant tells numbers from text.
        point_id = int(given) if given.isdecimal() else given
        found = await self._points.point(collection, point_id)
        if found is None:
            return None
        owners = (value_at(found.payload, tuple(key.split("."))) for key in self.owner_keys)
        # By the first key that names one: clients of a scope may use different keys.
        owner = next((each for each in owners if each is not None), None)
        return StoredMemory((collection, point_id), None if owner is None else id_text(owner))

    async def remove(self, client: Any, _memory: LoggedMemory, found: StoredMemory) -> None:
        """See `MemoryRemover.remove`."""
        collection, point_id = found.place
        selector = models.PointIdsList(points=[point_id])
        await resolve(client.delete(collection, points_selector=selector, wait=True))
        self._points.clean([collection])

    def close_local(self) -> None:
        """Close a local client; see `SubjectDataRegistry.close_local_clients`."""
        self._points.close_local()

    async def files(self) -> tuple[Path, ...]:
        """Return the folder of a local client."""
        folder = self._points.folder
        return () if folder is None else (folder,)
