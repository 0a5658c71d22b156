"""One of mem0's collections in Qdrant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .qdrant_holding import Points, named

_OWNER = "user_id"


class InQdrant:
    """
    A collection below mem0: a `mem0_vectors.Vectors`.

    Args:
        client: The bare client of mem0's vector store: a synchronous one, for both its colours.
        collection: Its name.
    """

    def __init__(self, client: Any, collection: str) -> None:
        self.collection = collection
        self._points = Points(client)

    async def page(self, user: str, after: Any | None = None) -> tuple[list[Any], Any | None]:
        """Return points of *user* behind *after*."""
        return await self._points.page(self.collection, named((_OWNER,), user), after)

    async def remove(self, user: str) -> int:
        """Remove all points of *user*."""
        return await self._points.remove(self.collection, named((_OWNER,), user))

    def clean(self) -> tuple[str, ...]:
        """Have a local client's file written anew."""
        return self._points.clean((self.collection,))

    def files(self) -> tuple[Path, ...]:
        """Return a local client's folder."""
        folder = self._points.folder
        return () if folder is None else (folder,)
