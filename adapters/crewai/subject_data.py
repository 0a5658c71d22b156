"""The records of one customer in CrewAI's memory storages, by the scope that is theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...memory import api
from .records import Owners

_UNTOLD = "wrapped without owner_scope=: no record says whose it is"
_LEFT = "the storage still lists some of the records after their deletion: erase again"
_FILES = "its files may keep older versions of what was deleted: have those removed"


class StoredRecords:
    """The records of one storage, for exports and erasures."""

    store = "crewai"
    title = "Memories about you"

    def __init__(self, client: Any, owners: Owners) -> None:
        self._client, self._owners = client, owners
        self.unavailable = _UNTOLD if owners.root is None else None

    def _held(self, customer: str) -> list[Any]:
        path, found = self._owners.path(customer), list[Any]()
        while listed := self._client.list_records(path, api.PAGE_SIZE, len(found)):
            found += listed
        return [each for each in found if self._owners.of(each.scope) == customer]  # not of c-10

    async def page(self, subject: api.DataSubject, after: Any | None = None) -> api.Page:
        """Return records of *subject*, as they are stored."""
        first: int = after or 0
        found, last = self._held(subject.customer), first + api.PAGE_SIZE
        told = [(e.id, {"text": e.content, "metadata": e.metadata}) for e in found[first:last]]
        records = [api.SubjectRecord(kind="memory", id=own, content=each) for own, each in told]
        return api.Page(tuple(records), last if last < len(found) else None)

    async def erase(self, subject: api.DataSubject) -> api.Erased:
        """Delete the records of *subject*, and look whether they are gone: not all storages say."""
        if found := self._held(subject.customer):
            self._client.delete(record_ids=[each.id for each in found])
        left = len(self._held(subject.customer))
        return api.Erased(len(found) - left, left, (_LEFT, _FILES) if left else (_FILES,))

    async def files(self) -> tuple[Path, ...]:
        """Return the folder of a storage that is embedded in this process."""
        folder = getattr(self._client, "_path", getattr(self._client, "_base_path", None))
        return (folder,) if isinstance(folder, Path) else ()
