"""One of mem0's collections in Qdrant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qdrant_client import models

from ...memory.subject_data.keeping import RecordCount
from ..qdrant.keeper import measured
from ..qdrant.points import Points, owner_filter

_OWNER = "user_id"


class QdrantVectors:
    """
    The `Vectors` of a collection in Qdrant.

    Args:
        client: The bare client of mem0's vector store: a synchronous one, in any case.
    """

    def __init__(self, client: Any, collection: str) -> None:
        self.collection = collection
        self._points = Points(client)

    async def page(
        self, user: str | None, after: Any | None = None
    ) -> tuple[list[Any], Any | None]:
        """Return points of *user*, or of everybody, after *after*."""
        wanted = models.Filter() if user is None else owner_filter((_OWNER,), user)
        return await self._points.page(self.collection, wanted, after)

    async def measured(self, kind: str, most: int) -> RecordCount:
        """Return how much there is of everybody."""
        return await measured(self._points, self.collection, kind, most)

    async def dimensions(self) -> int | None:
        """Return the dimensions of its vectors."""
        return await self._points.dimensions(self.collection)

    async def remove(self, user: str) -> int:
        """Remove all points of *user*."""
        return await self._points.remove(self.collection, owner_filter((_OWNER,), user))

    def clean(self) -> tuple[str, ...]:
        """Rewrite a local client's file without deleted points."""
        return self._points.clean((self.collection,))

    def files(self) -> tuple[Path, ...]:
        """Return a local client's folder."""
        folder = self._points.folder
        return () if folder is None else (folder,)
