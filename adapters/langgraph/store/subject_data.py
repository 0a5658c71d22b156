"""
Subject data in LangGraph's store: the items in namespaces that name the person.

All namespaces are listed and compared here. A store that keeps them as text refuses to be asked for
an id with a period, and may hold one all the same: such a namespace comes back in more labels than
it was written with.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from ....memory.subject_data.records import (
    PAGE_SIZE,
    DataSubject,
    Erased,
    LoggedMemory,
    Page,
    StoredMemory,
    SubjectRecord,
    UncertainOwnerError,
)
from ...toolkit.public import KnownPublic
from ...toolkit.sync_async import loop_of, run_in_client_loop
from ..files import clean_files, execute, files_of
from .addresses import are_public, label_of, path_of

if TYPE_CHECKING:
    from ....memory.subject_data.keeping import StoreKeeper

Namespace = tuple[str, ...]

UNTOLD = (
    "wrapped without customer_at: no namespace says whose its items are. Wrap it with "
    "scope.store(store, customer_at=1), the place of the customer's id among its labels, or with "
    "public=True where it holds nobody's personal data, public={...} where some namespaces do"
)

_LISTED = 10_000
"""Namespaces that are asked for at once: a store reads all of them for each page."""

_PERIOD = "."
"""Between the labels of a namespace that is kept as text."""

_REDACTED_ID = re.compile(r"<SUBJECT_ID(?:_[0-9a-f]+)?>")
"""A customer's id, in the name that the trail has of a namespace."""

_EARLIER = (
    "up to 0.2 the trail had a slash in a label as it has one between two: a namespace has an item "
    "of this key and may be the one. Look at it, and delete it yourself"
)

_DELETE_VECTORS = "DELETE FROM store_vectors WHERE prefix = ?"
_HAS_VECTORS = "SELECT 1 FROM sqlite_master WHERE name = 'store_vectors'"


class StoreSubjectData:
    """
    The provider of one store: its items.

    Args:
        client: The bare store, sync or async.
        customer_at: Index of the namespace label that is the customer's id.
        public: Its items are nobody's, or those in namespaces that begin with one of these labels.
    """

    store = "langgraph.store"
    title = "Notes"

    def __init__(
        self, client: Any, customer_at: int | None, *, public: KnownPublic = False
    ) -> None:
        self._client = client
        self._public = public
        self._customer_at = customer_at

    @property
    def unavailable(self) -> str | None:
        """Reason that no item can be attributed; None: it can, or all are nobody's."""
        return UNTOLD if self._customer_at is None and self._public is not True else None

    async def page(self, subject: DataSubject, after: Any | None = None) -> Page:
        """
        Return items of *subject*, namespace by namespace.

        Raises:
            UncertainOwnerError: Some may be theirs or another customer's.
        """
        namespaces, offset = after or (await self._namespaces(subject), 0)
        if not namespaces:
            return Page(())
        found = await self._search(namespaces[0], offset)
        records = tuple(_record(each) for each in found if each.namespace == namespaces[0])
        # By what was read and not by what is theirs: a search has the namespaces below as well.
        if len(found) == PAGE_SIZE:
            return Page(records, (namespaces, offset + PAGE_SIZE))
        return Page(records, (namespaces[1:], 0) if namespaces[1:] else None)

    async def _namespaces(self, subject: DataSubject) -> list[Namespace]:
        """Return the namespaces that name *subject*."""
        if self._customer_at is None:
            return []
        at, wanted = self._customer_at, subject.customer
        listed = [each for each in await self._listed() if not are_public(self._public, each)]
        theirs = [each for each in listed if each[at : at + 1] == (wanted,)]
        if isinstance(self._client, InMemoryStore):  # it keeps labels as they were given
            return theirs
        parted = [each for each in listed if each not in theirs and _reads_as(wanted, each[at:])]
        others = {_PERIOD.join(each[at:]) for each in listed} | set(subject.shorter_ids)
        _check_owner(parted, wanted, others)
        return theirs + parted

    async def _listed(self) -> list[Namespace]:
        listed: list[Namespace] = []
        while found := await self._batch(ListNamespacesOp(limit=_LISTED, offset=len(listed))):
            listed += found
        return listed

    async def _search(self, namespace: Namespace, offset: int) -> list[Any]:
        # Not refreshed: being asked about is no reason to live longer.
        found: list[Any] = await self._batch(
            SearchOp(namespace, limit=PAGE_SIZE, offset=offset, refresh_ttl=False)
        )
        return found

    async def erase(self, subject: DataSubject) -> Erased:
        """Remove all items of *subject*."""
        removed = 0
        for namespace in await self._namespaces(subject):
            removed += await self._empty(namespace)
        return Erased(removed, messages=await clean_files(self._client))

    def keeper(self) -> StoreKeeper:
        """See `KeepsRecords`."""
        from .keeper import ItemKeeper  # noqa: PLC0415 - only where it is wanted

        return ItemKeeper(self._client, self._customer_at, self._listed)

    async def find(self, memory: LoggedMemory) -> StoredMemory | None:
        """
        See `MemoryRemover.find`: the trail has the customer's id in a namespace redacted.

        Raises:
            UncertainOwnerError: Several namespaces may be the one.
        """
        found: list[StoredMemory] = []
        is_certain = True
        for namespace in await self._listed():
            # As the trail spells it, in which labels are escaped.
            ids = _ids(memory, path_of(namespace), "([^/]+)")
            owners = None if ids is None else tuple(map(label_of, ids))
            if is_earlier := owners is None:
                owners = _ids(memory, "/".join(map(str, namespace)), "(.+)")
            if owners is None or not all(map(memory.is_customer, owners)):
                continue
            if await self._batch(GetOp(namespace, memory.memory_id, refresh_ttl=False)):
                found.append(StoredMemory(namespace, next(iter(owners), None)))
                is_certain = is_certain and not is_earlier
        if len(found) > 1:
            raise UncertainOwnerError(
                f"{len(found):,} namespaces have an item of this key, and may be the one: look at "
                "them, and delete it yourself"
            )
        if not is_certain:
            raise UncertainOwnerError(_EARLIER)
        return found[0] if found else None

    async def remove(self, client: Any, memory: LoggedMemory, found: StoredMemory) -> None:
        """See `MemoryRemover.remove`."""
        if not _is_asynchronous(self._client):
            client.delete(found.place, memory.memory_id)
        else:
            await run_in_client_loop(
                self._client, lambda: client.adelete(found.place, memory.memory_id)
            )

    async def _empty(self, namespace: Namespace) -> int:
        removed, offset = 0, 0
        while found := await self._search(namespace, offset):
            mine = [each for each in found if each.namespace == namespace]
            if mine:
                # Past the guard: the journal and the rules are not asked whether to erase.
                await self._batch(*(PutOp(namespace, each.key, None) for each in mine))
            removed += len(mine)
            # What is in namespaces below this one stays, and is passed over.
            offset += len(found) - len(mine)
        await self._empty_vectors(namespace)
        return removed

    async def _empty_vectors(self, namespace: Namespace) -> None:
        """Remove embeddings: SQLite's foreign keys are off, so deleting an item leaves its own."""
        if await execute(self._client, _HAS_VECTORS):
            await execute(self._client, _DELETE_VECTORS, _PERIOD.join(namespace))

    async def _batch(self, *ops: Any) -> Any:
        if not _is_asynchronous(self._client):
            answers = self._client.batch(ops)
        else:
            answers = await run_in_client_loop(self._client, lambda: self._client.abatch(ops))
        return answers[0]

    async def files(self) -> tuple[Path, ...]:
        """Return the files of a store in SQLite."""
        return await files_of(self._client)


def _is_asynchronous(client: Any) -> bool:
    # AsyncValkeyStore keeps no loop, and has synchronous methods that say there are none.
    return loop_of(client) is not None or type(client).__name__.startswith("Async")


def _ids(memory: LoggedMemory, path: str, an_id: str) -> tuple[str, ...] | None:
    """Return the ids in *path*, where the trail has the namespace redacted. None: it is another."""
    parts = _REDACTED_ID.split(memory.collection or "")
    match = re.fullmatch(an_id.join(map(re.escape, parts)), path)
    return None if match is None else match.groups()


def _reads_as(customer: str, labels: Namespace) -> bool:
    """Tell whether *labels*, as text, begin with *customer*, who has a period."""
    return _PERIOD in customer and f"{_PERIOD.join(labels)}.".startswith(f"{customer}.")


def _check_owner(parted: list[Namespace], customer: str, others: set[str]) -> None:
    """
    Raise if a namespace in *parted* may be another customer's, or cannot be asked for.

    ``("notes", "c.42")`` and ``("notes", "c", "42")`` are one namespace in a store of text. It is
    the customer's unless there is a customer ``c`` besides.
    """
    labels = customer.split(_PERIOD)
    shorter = {_PERIOD.join(labels[:count]) for count in range(1, len(labels))}
    if parted and (shorter & others or not all(map(all, parted))):
        raise UncertainOwnerError(
            f"{len(parted):,} namespaces are this customer's or another's: the store keeps labels "
            "as text, and the id has a period. Look at them, and give them labels without one"
        )


def _record(item: Any) -> SubjectRecord:
    return SubjectRecord(
        kind="item",
        id=item.key,
        collection=_PERIOD.join(item.namespace),
        content=item.value,
        created=item.created_at.isoformat(),
        updated=item.updated_at.isoformat(),
    )
