"""Subject data in Qdrant: the points whose payload names the person under the owner's key."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdrant_client import models

from ...memory.subject_data.records import (
    DataSubject,
    Erased,
    LoggedMemory,
    Page,
    StoredMemory,
    SubjectRecord,
)
from ...telemetry.event.spelling import id_text
from ..toolkit.public import KnownPublic
from ..toolkit.sync_async import resolve
from .owner import value_at
from .points import Points, owner_filter

if TYPE_CHECKING:
    from ...memory.subject_data.keeping import StoreKeeper

UNTOLD = (
    "wrapped without owner_key: no point says whose it is. Wrap it with "
    'scope.qdrant(client, owner_key="customer_id"), or with public=True where it holds '
    "nobody's personal data, public={...} where some collections do"
)


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

    def keeper(self) -> StoreKeeper:
        """See `KeepsRecords`."""
        from .keeper import QdrantKeeper  # noqa: PLC0415 - only where it is wanted

        return QdrantKeeper(self._points, self._owner_of, is_loop_bound=self._points.is_loop_bound)

    def _owner_of(self, payload: Any) -> str | None:
        # By the first key that names one: clients of a scope may use different keys.
        owners = (value_at(payload, tuple(key.split("."))) for key in self.owner_keys)
        owner = next((each for each in owners if each is not None), None)
        return None if owner is None else id_text(owner)

    async def find(self, memory: LoggedMemory) -> StoredMemory | None:
        """See `MemoryRemover.find`: an id is a number or a UUID."""
        given, collection = memory.memory_id, memory.collection or ""
        # The trail has ids as text, where Qdrant tells numbers from text.
        point_id = int(given) if given.isdecimal() else given
        found = await self._points.point(collection, point_id)
        if found is None:
            return None
        return StoredMemory((collection, point_id), self._owner_of(found.payload))

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
