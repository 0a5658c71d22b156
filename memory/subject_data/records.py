"""
What stores hold about one person: the records, and the protocols of whoever reads and erases them.

Declared here once. Adapters implement `SubjectDataProvider`; the audit trail exports and erases
through `StoreData` and `CustomerData`, and this is the only module of memory that it imports.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from ..errors import ScopeError

PAGE_SIZE = 100
"""How many records a page holds at most."""


IsShared: TypeAlias = Callable[[str, Mapping[str, str | None]], bool]
"""See `DataSubject.is_shared`."""


def _unshared(_run: str, _owners: Mapping[str, str | None]) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSubject:
    """
    The person whose data is read or erased.

    Attributes:
        customer: Their id, as the stores know it.
        tenant: The tenant they are a customer of. None of the stores that are wrapped here knows
            tenants: ids are to differ between them, or their data is one person's.
        runs: Runs and threads that the audit trail knows to be theirs. Verbatim.
        memory_ids: Ids of memories that it knows to be theirs, by the store's name; of a
            checkpointer, its checkpoints'. A history finds deleted memories by nothing else.
        stores: Names of the stores that the audit trail has writes of theirs in.
        run_names: What the audit trail calls these runs: redacted.
        is_shared: Takes a thread and its checkpoints' ids, each with the customer that the store
            has for it, if any. Tells whether another customer has written there: by the trail, and
            by the store where the trail does not know of a checkpoint.
        including_shared: Whether what is another customer's, too, is to be read and erased.
        shorter_ids: Ids of other customers that this one begins with, up to a period: ``c`` where
            it is ``c.42``. A store that takes a period for a border confuses the two.

    Raises:
        ScopeError: The customer is nobody or everybody.
    """

    customer: str = field(repr=False)
    tenant: str | None = None
    runs: Collection[str] = field(default=(), repr=False)
    memory_ids: Mapping[str, Collection[str]] = field(
        default_factory=dict[str, Collection[str]], repr=False
    )
    stores: Collection[str] = frozenset()
    run_names: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    is_shared: IsShared = field(default=_unshared, repr=False)
    including_shared: bool = False
    shorter_ids: Collection[str] = field(default=frozenset(), repr=False)

    def __post_init__(self) -> None:
        """Refuse a name that a store would take for everybody's."""
        # Stores take an empty id for no filter: all that they hold would be erased.
        if self.customer.strip() in {"", "*"}:
            raise ScopeError("a customer is one id: not empty, and not a wildcard")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectRecord:
    """
    One record that a store holds about a person.

    Attributes:
        kind: ``memory``, ``point``, ``item`` or ``thread`` for what is remembered now; ``history``,
            ``message`` and ``entity`` for what a store keeps beside it.
        id: As the store knows it.
        collection: Where in the store.
        content: As it is stored, redacted if it was: text, or what JSON can say.
        created: When, as the store writes it.
        updated: Likewise.
        is_own: False where the content quotes what other people's records quote too, so that its
            texts are no sign of this one in a file.
        is_shared: Whether it is another customer's, too. It has no content then, unless it was
            asked for.
    """

    kind: str
    id: str = field(repr=False)
    collection: str | None = None
    content: Any = field(default=None, repr=False)
    created: str | None = None
    updated: str | None = None
    is_own: bool = True
    is_shared: bool = False

    @property
    def is_current(self) -> bool:
        """Whether the agent can recall it."""
        return self.kind in {"memory", "point", "item", "thread"}


class Page(NamedTuple):
    """
    Some of a person's records.

    Attributes:
        records: In the store's order.
        after: The argument that gets the next page. None: this was the last.
    """

    records: tuple[SubjectRecord, ...]
    after: Any | None = None


class Erased(NamedTuple):
    """
    The outcome of erasing a person from one store.

    Attributes:
        removed: Records that are gone.
        retained: Records that were found and kept.
        messages: Limits that the operator should know, a line each, without personal data.
    """

    removed: int
    retained: int = 0
    messages: tuple[str, ...] = ()


class NotErasedError(Exception):
    """Something of a person may still be there. The message is a line without personal data."""


class UncertainOwnerError(NotErasedError):
    """A store has records that are the person's or somebody else's. Says so in such a line."""


class SubjectDataProvider(Protocol):
    """
    Reads and erases what one client's store holds about a person.

    The chokepoint fails open; this does not: the methods raise whatever the store raises. They are
    coroutines for synchronous clients too, and all are awaited in one event loop.
    """

    @property
    def store(self) -> str:
        """The store's name in events."""
        ...

    @property
    def title(self) -> str:
        """The kind of thing it keeps, for the person to read: ``Facts about you``."""
        ...

    @property
    def unavailable(self) -> str | None:
        """Why records cannot be told apart by person, in one line. None: they can."""
        ...

    async def page(self, subject: DataSubject, after: Any | None = None) -> Page:
        """Return a page of the records of *subject*, the first or the one behind *after*."""
        ...

    async def erase(self, subject: DataSubject) -> Erased:
        """Remove them, from the store's files too where they are on this machine. Idempotent."""
        ...

    async def files(self) -> tuple[Path, ...]:
        """Return the files, or folders of files, in which the store keeps them on this machine."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedMemory:
    """
    One memory, as the audit trail knows it: ids and labels that held personal data are redacted.

    Attributes:
        store: The store's name in events.
        collection: The store's own grouping.
        memory_id: As the store knows it.
        tenant: The tenant it was written for.
        is_customer: Tells whether an id is that of the customer it was written for.
    """

    store: str
    collection: str | None = field(repr=False)
    memory_id: str = field(repr=False)
    tenant: str | None = None
    is_customer: Callable[[str], bool] = field(repr=False)


class StoredMemory(NamedTuple):
    """
    Where a store has a memory.

    Attributes:
        place: In the store's own terms.
        owner: The customer whom it is of, as the store knows them. None: it does not say.
    """

    place: Any
    owner: str | None = None


@runtime_checkable
class MemoryRemover(Protocol):
    """A `SubjectDataProvider` that can take out one memory as well. Raises what the store does."""

    async def find(self, memory: LoggedMemory, /) -> StoredMemory | None:
        """
        Return where *memory* is. None: the store has none of that id.

        Raises:
            UncertainOwnerError: Several may be it.
        """
        ...

    async def remove(self, client: Any, memory: LoggedMemory, found: StoredMemory, /) -> None:
        """Delete it through *client*, the guarded one, and what the store keeps beside it."""
        ...


class SealedWrite(NamedTuple):
    """
    One write of a record, as the audit trail has it.

    Attributes:
        log: The name of the log that it is in.
        seq: Its number there.
        recorded_us: When it was recorded, microseconds since 1970 UTC.
        purpose: The purpose of the context that it was made in. None: it had none.
        keep_s: How long that context said that its records are kept. None: it did not say.
        subject: The customer's pseudonym in the log. None: the write named nobody.
        run: The keyed hash of the run.
        place: The keyed hash of store and collection.
    """

    log: str
    seq: int
    recorded_us: int
    purpose: str | None
    keep_s: int | None
    subject: str | None
    run: str | None
    place: str | None


def newest_of(writes: Sequence[SealedWrite]) -> SealedWrite | None:
    """Return the newest of *writes*. Of several logs their clocks tell, for there is no order."""
    are_several = len({each.log for each in writes}) > 1
    key = attrgetter("recorded_us" if are_several else "seq")
    return max(writes, key=key, default=None)


class VectorDimensions(NamedTuple):
    """
    The dimensions of a store's vectors: where the two differ, no recall finds anything.

    Attributes:
        embedder: That its embedder makes.
        stored: That its collection has.
    """

    collection: str
    embedder: int
    stored: int


@runtime_checkable
class KnowsDimensions(Protocol):
    """A `SubjectDataProvider` that knows its embedder too. Raises what the store does."""

    async def dimensions(self) -> VectorDimensions | None:
        """Return the dimensions of its vectors. None: that cannot be told."""
        ...


class StoreData(Protocol):
    """The data of one person in one store, for code that is not asynchronous."""

    @property
    def name(self) -> str:
        """The store's name, numbered where a scope has several of it."""
        ...

    @property
    def store(self) -> str:
        """See `SubjectDataProvider.store`."""
        ...

    @property
    def title(self) -> str:
        """See `SubjectDataProvider.title`."""
        ...

    @property
    def unavailable(self) -> str | None:
        """See `SubjectDataProvider.unavailable`."""
        ...

    def records(self) -> Iterator[SubjectRecord]:
        """Yield all records. Raises what the store raises."""
        ...

    def erase(self) -> Erased:
        """Remove the person's records. Raises the store's errors."""
        ...

    def files(self) -> tuple[Path, ...]:
        """Return where the store keeps them on this machine."""
        ...


class SealedFiles(NamedTuple):
    """
    What is known of encrypted files of ours, a line each.

    Attributes:
        waiting: What is still in them, and may be anybody's.
        others: Files beside them that were not looked at: another application's.
    """

    waiting: Sequence[str] = ()
    others: Sequence[str] = ()


class CustomerData(Protocol):
    """The data of one customer in an application, but for its audit trail."""

    def settle(self) -> Sequence[str]:
        """Complete pending writes and deliver pending events; return what failed, a line each."""
        ...

    def sealed(self) -> Mapping[str, SealedFiles]:
        """
        Return what encrypted files of ours still hold, by kind.

        They cannot be searched, so whatever is in them may be anybody's.
        """
        ...

    def stores(self, subject: DataSubject) -> Iterable[StoreData]:
        """Return the customer's data in each store."""
        ...

    def erase_pseudonyms(self) -> int | None:
        """
        Erase them from the vault, and return how many. None: there is no vault.

        Raises:
            NotErasedError: Some may still be there, or it cannot be told.
        """
        ...

    def files(self) -> Mapping[str, Sequence[Path]]:
        """Return the files that belong to no store and may be searched, by kind: logs."""
        ...


class RemovalOutcome(StrEnum):
    """
    The outcome of taking out one memory.

    Attributes:
        DELETED: It is gone.
        GONE: It was not there any more.
        LEFT: It was deleted, and is there all the same.
        FAILED: The store raised, or it is not certain which one it is.
        UNREACHABLE: No client of the application can take out memories of that store.
    """

    DELETED = "deleted"
    GONE = "gone"
    LEFT = "left"
    FAILED = "failed"
    UNREACHABLE = "unreachable"


class MemoryStores(Protocol):
    """The stores of an application, for taking out memories."""

    def settle(self) -> Sequence[str]:
        """See `CustomerData.settle`."""
        ...

    def take_out(self, memory: LoggedMemory, /) -> tuple[RemovalOutcome, str]:
        """Delete *memory* wherever it is, look again, and return what came of it, and a reason."""
        ...
