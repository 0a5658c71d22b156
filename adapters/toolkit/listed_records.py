"""What a store that lists by owner holds about a person, page by page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...memory.api import PAGE_SIZE, DataSubject, Erased, Page, SubjectRecord
from ...memory.subject_data.records import UncertainOwnerError
from ...telemetry.event.spelling import id_text
from .owned_records import VectorRow
from .sync_async import resolve

_SEVERAL = "a record has several owners, or another one, as this store compares ids"
_UNTOLD = "wrapped without owner_key: no document says whose it is"


class ListedRecords:
    """
    A `SubjectDataProvider` of a store that can list the records of an owner.

    The methods with an underscore are the store's own, and may be asynchronous.

    Args:
        key: Where a record holds its owner's id. None: nowhere.
        public: Its records are nobody's personal data.
        unknown: Why the store cannot list by owner, in one line. None: it can.
    """

    store: str
    title = "Documents about you"
    left: tuple[str, ...] = ()

    def __init__(self, key: str | None, *, public: bool, unknown: str | None = None) -> None:
        self._key = key
        self.unavailable = None if public else unknown or (_UNTOLD if key is None else None)

    def _listed(self, _customer: str, _offset: int) -> Any:
        """Return at most `PAGE_SIZE` records, from *_offset* on."""
        return []

    def _remove(self, _ids: list[str]) -> Any:
        raise NotImplementedError

    def _clean(self, _customer: str) -> Any:
        """Remove what the store keeps of deleted records, and return what is left, a line each."""
        return self.left

    async def _check(self) -> None:
        """Raise what keeps a listing from being all that there is."""

    async def page(self, subject: DataSubject, after: Any | None = None) -> Page:
        """Return records of *subject*, as they are stored."""
        offset = after or 0
        records = tuple(
            SubjectRecord(
                kind="memory",
                id=str(each.own),
                content={"text": each.text, "metadata": each.metadata},
            )
            for each in await self._found(subject.customer, offset)
        )
        if len(records) == PAGE_SIZE:
            return Page(records, offset + PAGE_SIZE)
        await self._check()
        return Page(records)

    async def _found(self, customer: str, offset: int) -> list[VectorRow]:
        found = [] if self._key is None else [*await resolve(self._listed(customer, offset))]
        if any(id_text(each.metadata.get(self._key)) != customer for each in found):
            raise UncertainOwnerError(_SEVERAL)
        return found

    async def erase(self, subject: DataSubject) -> Erased:
        """Delete the records of *subject*, from files on this machine too."""
        removed = 0
        while found := await self._found(subject.customer, 0):
            await resolve(self._remove([str(each.own) for each in found]))
            removed += len(found)
        await self._check()
        return Erased(removed, messages=tuple(await resolve(self._clean(subject.customer))))

    async def files(self) -> tuple[Path, ...]:
        """Return the files, or folders of files, in which it keeps them on this machine."""
        return ()
