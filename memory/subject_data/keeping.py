"""
The records of a store, whosever they are, with their ages and sizes: for growth and retention.

An adapter's `SubjectDataProvider` that is a `KeepsRecords` too lists, measures and removes single
records. What it cannot judge it says, and the record stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import orjson

RecordKey: TypeAlias = tuple[str, str | None, str]
"""Kind, collection and id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCount:
    """
    How much a store holds of one kind.

    Attributes:
        kind: ``memory``, ``history``, ``message``, ``entity``, ``point``, ``item``, ``checkpoint``,
            ``write`` or ``blob``.
        rows: How many.
        bytes: Their size. None: the store does not tell.
        is_sampled: Whether the bytes are those of a page, times the rows; or the rows of a status.
        status: Of the thread that they belong to. None: of no thread, or it was not looked at.
        ids: Ids of some of them, for which purposes are looked up.
    """

    kind: str
    rows: int
    bytes: int | None = None
    is_sampled: bool = False
    status: str | None = None
    ids: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRecord:
    """
    One record of a store.

    Attributes:
        kind: ``memory``, ``point``, ``item``, ``thread`` (all of it) or ``checkpoint`` (an older
            state of a thread).
        id: As the store knows it.
        collection: Where in the store; of a checkpoint, thread and namespace.
        owner: The customer, as the store knows them. None: it does not say.
        stated_us: When it was last written, as the store says: microseconds since 1970 UTC. None:
            it does not say.
        expires_us: When it ends by its own word. None: it does not say.
        size_bytes: As far as it is known.
        status: Of its thread: ``done``, ``interrupted``, ``failed``, ``pending`` or ``unknown``.
            None: it is no thread's.
        thread: The thread's id.
        trail_ids: The ids under which the audit trail has its writes.
        rank: Of a checkpoint: how many newer ones its thread has in this namespace.
        place: In the adapter's own terms.
    """

    kind: str
    id: str = field(repr=False)
    collection: str | None = field(default=None, repr=False)
    owner: str | None = field(default=None, repr=False)
    stated_us: int | None = None
    expires_us: int | None = None
    size_bytes: int | None = None
    status: str | None = None
    thread: str | None = field(default=None, repr=False)
    trail_ids: tuple[str, ...] = field(repr=False)
    rank: int = 0
    place: Any = field(default=None, repr=False, compare=False)

    @property
    def key(self) -> RecordKey:
        """Kind, collection and id, which no other record of the store has."""
        return self.kind, self.collection, self.id


class RecordPage(NamedTuple):
    """
    Some of a store's records.

    Attributes:
        records: In the store's order.
        after: The argument that gets the next page. None: this was the last.
        unreadable: What could not be read, a line each, without personal data. It stays.
    """

    records: tuple[KeptRecord, ...]
    after: Any | None = None
    unreadable: tuple[str, ...] = ()


class StoreKeeper(Protocol):
    """Measures, lists and removes the records of one client's store. Raises what the store does."""

    @property
    def is_loop_bound(self) -> bool:
        """Whether the client's connections belong to an event loop that cannot be told."""
        ...

    async def measure(self, most: int, /) -> Sequence[RecordCount]:
        """Return what there is of each kind; *most* records at most are looked at one by one."""
        ...

    async def page(self, after: Any | None = None, /) -> RecordPage:
        """Return a page of all records, the first or the one behind *after*."""
        ...

    async def spared(self, due: Sequence[KeptRecord], /) -> Mapping[RecordKey, str]:
        """Return those of *due* that must stay if the others go, each with why, in a few words."""
        ...

    async def remove(self, client: Any, records: Sequence[KeptRecord], /) -> None:
        """Delete *records* through *client*, the guarded one, and what the store keeps beside."""
        ...

    async def left(self, records: Sequence[KeptRecord], /) -> Sequence[KeptRecord]:
        """Return those of *records* that are there, in the store or what it keeps beside, anew."""
        ...

    async def clean(self) -> Sequence[str]:
        """Rewrite files of this machine without what was deleted; return remarks, a line each."""
        ...


@runtime_checkable
class KeepsRecords(Protocol):
    """A `SubjectDataProvider` whose records can be measured, listed and removed one by one."""

    def keeper(self) -> StoreKeeper:
        """Return what does it."""
        ...


def json_bytes(value: Any) -> int:
    """Return the size of *value* as JSON."""
    return len(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS))
