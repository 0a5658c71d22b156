"""The points of a client of Qdrant, for growth and retention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qdrant_client import models

from ...memory.context import context
from ...memory.subject_data.keeping import (
    KeptRecord,
    RecordCount,
    RecordKey,
    RecordPage,
    json_bytes,
)
from ..toolkit.sync_async import resolve
from .points import Points

_EVERY = models.Filter()
_AT_ONCE = 100


class QdrantKeeper:
    """
    The `StoreKeeper` of one client.

    Args:
        points: Those of the bare client.
        owner_of: Returns the customer that a payload names.
        is_loop_bound: Whether the client is asynchronous, and not local.
    """

    def __init__(
        self, points: Points, owner_of: Callable[[Any], str | None], *, is_loop_bound: bool
    ) -> None:
        self._points = points
        self._owner_of = owner_of
        self.is_loop_bound = is_loop_bound

    async def measure(self, most: int) -> Sequence[RecordCount]:
        """Return the points of each collection, by Qdrant's own count."""
        collections = await self._points.collections()
        share = max(1, most // max(1, len(collections)))
        return [await measured(self._points, each, "point", share) for each in collections]

    async def page(self, after: Any | None = None) -> RecordPage:
        """Return points, collection by collection."""
        collection, offset = after or ("", None)
        collections = [each for each in await self._points.collections() if each >= collection]
        if not collections:
            return RecordPage(())
        collection = collections[0]
        found, following = await self._points.page(collection, _EVERY, offset)
        records = tuple(self._record(collection, each) for each in found)
        if following is not None:
            return RecordPage(records, (collection, following))
        return RecordPage(records, (collections[1], None) if collections[1:] else None)

    def _record(self, collection: str, point: Any) -> KeptRecord:
        return KeptRecord(
            kind="point",
            id=str(point.id),
            collection=collection,
            owner=self._owner_of(point.payload),
            size_bytes=json_bytes(point.payload),
            trail_ids=(str(point.id),),
            place=point.id,
        )

    async def spared(self, _due: Sequence[KeptRecord]) -> Mapping[RecordKey, str]:
        """Return none: no point needs another one."""
        return {}

    async def remove(self, client: Any, records: Sequence[KeptRecord]) -> None:
        """Delete points, those of one customer and collection in one call."""
        groups: defaultdict[tuple[str, str | None], list[Any]] = defaultdict(list)
        for each in records:
            groups[each.collection or "", each.owner].append(each.place)
        for (collection, owner), ids in groups.items():
            for start in range(0, len(ids), _AT_ONCE):
                selector = models.PointIdsList(points=ids[start : start + _AT_ONCE])
                with context(customer=owner, purpose="retention"):
                    await resolve(client.delete(collection, points_selector=selector, wait=True))

    async def left(self, records: Sequence[KeptRecord]) -> Sequence[KeptRecord]:
        """Return those that are found by their ids."""
        return [each for each in records if await self._is_there(each)]

    async def _is_there(self, record: KeptRecord) -> bool:
        return await self._points.point(record.collection or "", record.place) is not None

    async def clean(self) -> Sequence[str]:
        """Rewrite the files of a local client."""
        return self._points.clean(await self._points.collections())


async def measured(points: Points, collection: str, kind: str, most: int) -> RecordCount:
    """Return how much there is in a collection: rows counted, bytes from a page of payloads."""
    rows = await points.count(collection)
    sample, _following = await points.page(collection, _EVERY) if rows else ([], None)
    sample = sample[:most]
    held = sum(json_bytes(each.payload) for each in sample)
    dense_bytes = await points.vector_bytes(collection)
    size = held * rows // len(sample) + rows * dense_bytes if sample else 0
    return RecordCount(
        kind=kind,
        rows=rows,
        bytes=size,
        is_sampled=rows > len(sample),
        ids=tuple(str(each.id) for each in sample),
    )
