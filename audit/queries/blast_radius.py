"""
The blast radius of a memory: its writer, the runs that recalled it, and their later writes.

It is followed from memory to run to memory, in order of time, as far as the trail goes. A run is
reached when a recall of it named the memory, a memory when such a run wrote it afterwards: what
passed between agents of one run needs no trace of its own. What overlapped counts as afterwards,
and a memory is its address: what was rewritten since is the same one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple, TypeAlias, cast

import orjson

from ...telemetry.event.event import Journalled, OperationClass, Status
from ...telemetry.text import recorded_name
from ..database.database import Value, among
from ..database.errors import AmbiguousMemoryError, UnknownMemoryError
from ..record.rows import AuditRow, row_from
from ..record.subjects import CUSTOMER
from ..store.snapshot import Snapshot, SnapshotSource, found_by_seqs
from ..store.tree import SealedEvents
from .memory_model import ended_us

MOST_OPERATIONS = 20_000
"""Operations that are read before it is given up."""

_READS = frozenset({OperationClass.RECALL, OperationClass.RESUME})
_WRITES = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT})
_NEVER_TRIED = frozenset({Status.REJECTED, Status.REFUSED, Status.DENIED})
_WAITED = frozenset({Journalled.APPENDED, Journalled.REPLAYED})

_UNSPECIFIC_ID = "<SUBJECT_ID>"
"""In the name of a place that is another one for each customer."""

_OF_MEMORY = "SELECT seq FROM audit_memory WHERE memory_ref = ? ORDER BY seq"
_OF_RUN = "SELECT seq FROM audit_detail WHERE run_ref = ? ORDER BY seq"
# Not joined to the other: a database without statistics would read the whole of it.
_WRITTEN = (
    "SELECT seq FROM audit_event WHERE seq IN ({}) AND op_class IN ('remember', 'checkpoint') "
    "AND kind = 'operation'"
)
_ERASED_SINCE = (
    "SELECT e.header FROM audit_event e LEFT JOIN audit_detail d ON d.seq = e.seq "
    "WHERE d.seq IS NULL AND e.kind = 'operation' AND e.occurred_us >= ? "
    "AND e.op_class IN ('recall', 'resume', 'remember', 'checkpoint')"
)
_CUSTOMER = "SELECT subject_uid, merged_into FROM audit_subject WHERE subject_uid = ? AND kind = ?"


class MemoryAddress(NamedTuple):
    """
    A memory, as the trail knows it.

    Attributes:
        owner: The customer, where store, collection and id are the same for several.
    """

    store: str
    collection: str | None
    memory_id: str
    owner: str | None = None


class RunAddress(NamedTuple):
    """
    A run, as the trail knows it.

    Attributes:
        owner: The customer, where the name is the same for several.
    """

    run: str
    tenant: str | None
    owner: str | None = None


_Address: TypeAlias = MemoryAddress | RunAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedMemory:
    """
    A memory in the radius.

    Attributes:
        reached_us: When it was first written so, microseconds since 1970 UTC; 0: before the trail.
        hops: Runs between it and the memory that was asked for; 0: it is that one.
        through: The run that wrote it first so; None for the memory that was asked for.
        writes: The operations that wrote it since then, oldest first.
        customer: The customer's pseudonym in this trail. None: the write named nobody.
        origin: The label of where it came from, that was sealed with the first write; None: none.
    """

    address: MemoryAddress
    reached_us: int
    hops: int
    through: RunAddress | None
    writes: tuple[AuditRow, ...]
    deletions: tuple[AuditRow, ...]
    customer: str | None
    origin: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedRun:
    """
    A run in the radius.

    Attributes:
        reached_us: When it first saw a memory of the radius, microseconds since 1970 UTC.
        hops: Runs up to it, itself included.
        through: The memory that it saw first.
        recalls: The operations that found a memory of the radius, oldest first.
    """

    address: RunAddress
    reached_us: int
    hops: int
    through: MemoryAddress
    recalls: tuple[AuditRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlastRadius:
    """
    All that a memory has reached.

    Attributes:
        memories: The memory itself, then those that were written after it was seen, in that order.
        runs: Those that saw one of them, in that order.
        without_run: Recalls that found one and named no run: what followed cannot be told.
        erased: Operations since then whose detail is gone: one of them may have seen it.
        is_cut: Whether that was the limit, so that what was reached later is missing.
    """

    memories: tuple[ReachedMemory, ...]
    runs: tuple[ReachedRun, ...]
    without_run: tuple[AuditRow, ...]
    erased: int
    operations: int
    is_cut: bool

    @property
    def derived(self) -> tuple[ReachedMemory, ...]:
        """What was written after the memory was seen."""
        return self.memories[1:]


def blast_radius(
    log: SnapshotSource,
    memory_id: str,
    *,
    store: str | None = None,
    collection: str | None = None,
    most: int = MOST_OPERATIONS,
) -> BlastRadius:
    """
    Return what the memory *memory_id* has reached.

    Args:
        log: The trail.
        memory_id: As its store knows it.
        store: Its store, where several have a memory of that id.
        collection: Likewise, as the trail has it.
        most: How many operations are read at most.

    Raises:
        UnknownMemoryError: There is no operation on it.
        AmbiguousMemoryError: Several memories have that id.
        TamperedError: Who is who is not as it was written, or one of the events is not.
        AuditError: The log cannot be read, or was written with other keys.
    """
    with log.reading() as snapshot:
        snapshot.check_keys()
        snapshot.check_bindings()
        snapshot.check_details()
        # One moment of the log: between two, a run could have written what no memory led to.
        search = _Search(snapshot, most)
        # An id has its name in one line here, however its store writes it.
        search.begin(recorded_name(memory_id), store, collection)
        search.follow()
        return search.result()


def run_address(row: AuditRow) -> RunAddress | None:
    """Return the run that *row* is a part of. None: it names none."""
    # Names of runs are the application's: two tenants, or two customers, may have the same.
    return None if row.run is None else RunAddress(row.run, row.tenant, _owner(row, row.run))


def is_possible_write(row: AuditRow) -> bool:
    """Return whether a store may have what *row* would write."""
    # A write that timed out may have been done all the same.
    tried = row.status not in _NEVER_TRIED or row.journal in _WAITED
    return row.op_class in _WRITES and tried


@dataclass(slots=True)
class _Reached:
    """A memory or a run: when it was reached at the earliest, and all that reached it."""

    reached_us: int
    hops: int
    through: _Address | None
    rows: dict[int, AuditRow] = field(default_factory=dict[int, AuditRow])
    deletions: list[AuditRow] = field(default_factory=list[AuditRow])

    @property
    def operations(self) -> tuple[AuditRow, ...]:
        """The operations that reached this run or memory, oldest first."""
        return tuple(sorted(self.rows.values(), key=lambda row: (row.occurred_us, row.seq)))


class _Search:
    """
    The search in one moment of a log.

    What was reached earliest is followed first, so that each memory and run is read once.
    """

    def __init__(self, snapshot: Snapshot, most: int) -> None:
        self._snapshot = snapshot
        self._sealed = SealedEvents(snapshot)
        self._most = most
        self._read: dict[int, AuditRow] = {}
        self._named: dict[int, frozenset[MemoryAddress]] = {}
        self._is_cut = False
        self._reached: dict[_Address, _Reached] = {}
        self._settled: dict[_Address, None] = {}
        self._queue: list[tuple[int, int, _Address]] = []
        self._numbers = count()
        self._without_run: dict[int, AuditRow] = {}
        self._since_us = 0

    def begin(self, memory_id: str, store: str | None, collection: str | None) -> None:
        """Reach the one memory that is meant."""
        rows = self._of_memory(memory_id)
        found = dict.fromkeys(
            address
            for row in rows
            for address in _addresses(row)
            if address.memory_id == memory_id
            and store in {None, address.store}
            and collection in {None, address.collection}
        )
        if not found:
            raise UnknownMemoryError
        if len(found) > 1:
            # Ids are a store's own: two memories of one id have nothing to do with each other.
            raise AmbiguousMemoryError([(each.store, each.collection) for each in found])
        (root,) = found
        writes = [row for row in rows if is_possible_write(row) and root in self._named[row.seq]]
        # What was there before the trail is older than everything in it.
        self._since_us = min((row.occurred_us for row in writes), default=0)
        self._reach(root, self._since_us, 0, None)
        self._reached[root].rows = {row.seq: row for row in writes}

    def follow(self) -> None:
        """Follow every reached memory and run, in order of time, until none is left."""
        while self._queue:
            _reached_us, _order, address = heapq.heappop(self._queue)
            # It was pushed again when an earlier way was found; the first that comes out is the
            # earliest.
            if address in self._settled:
                continue
            self._settled[address] = None
            if isinstance(address, MemoryAddress):
                self._follow_memory(address, self._reached[address])
            else:
                self._follow_run(address, self._reached[address])

    def _follow_memory(self, address: MemoryAddress, reached: _Reached) -> None:
        for row in self._of_memory(address.memory_id):
            # The keyed hash has the id alone: store and collection are in the detail.
            if ended_us(row) < reached.reached_us or address not in self._named[row.seq]:
                continue
            if row.op_class is OperationClass.FORGET:
                # One that failed has left the memory where it was.
                reached.deletions += [row] if row.status.is_normal else []
            # A neutral value is not what the store has: with it nobody saw anything.
            elif row.op_class in _READS and not row.neutral:
                self._seen(row, address, reached)

    def _seen(self, row: AuditRow, address: MemoryAddress, reached: _Reached) -> None:
        run = run_address(row)
        if run is None:
            # Counted and told: an answer that leaves it out would be taken for the whole.
            self._without_run[row.seq] = row
            return
        self._reach(run, max(reached.reached_us, row.occurred_us), reached.hops + 1, address)
        self._reached[run].rows[row.seq] = row

    def _follow_run(self, address: RunAddress, reached: _Reached) -> None:
        for row in self._written_by(address.run):
            is_of_run = (row.run, row.tenant) == address[:2]
            if (
                ended_us(row) < reached.reached_us
                or not is_of_run
                or _owner(row, address.run) != address.owner
                or not is_possible_write(row)
            ):
                continue
            moment_us = max(reached.reached_us, row.occurred_us)
            for memory in _addresses(row):
                # Whatever was written after that: what a model made of what it saw nobody can tell.
                self._reach(memory, moment_us, reached.hops, address)
                self._reached[memory].rows[row.seq] = row

    def _reach(
        self, address: _Address, moment_us: int, hops: int, through: _Address | None
    ) -> None:
        known = self._reached.get(address)
        if known is None:
            self._reached[address] = _Reached(moment_us, hops, through)
        elif moment_us < known.reached_us:
            known.reached_us, known.hops, known.through = moment_us, hops, through
        else:
            return
        # A number in between, since addresses cannot be compared: they have None in them.
        heapq.heappush(self._queue, (moment_us, next(self._numbers), address))

    def _of_memory(self, memory_id: str) -> list[AuditRow]:
        return self._rows(self._seqs(_OF_MEMORY, self._snapshot.references.memory(memory_id)))

    def _written_by(self, run: str) -> list[AuditRow]:
        seqs = self._seqs(_OF_RUN, self._snapshot.references.run(run))
        return self._rows([seq for (seq,) in among(self._snapshot, _WRITTEN, seqs)])

    def _seqs(self, statement: str, *values: Value) -> list[int]:
        found: list[Any] = self._snapshot.execute(statement, values).fetchall()
        return [seq for (seq,) in found]

    def _rows(self, seqs: Sequence[int]) -> list[AuditRow]:
        """Return these operations, each of which is read once."""
        unread = [seq for seq in seqs if seq not in self._read]
        # Bounded by what is read: one shared document may reach all runs of a year.
        room = self._most - len(self._read)
        self._is_cut |= len(unread) > room
        found = self._sealed.among(found_by_seqs(self._snapshot, unread[:room]))
        for row in map(row_from, found):
            self._read[row.seq], self._named[row.seq] = row, frozenset(_addresses(row))
        return [self._read[seq] for seq in seqs if seq in self._read]

    def result(self) -> BlastRadius:
        """Return the blast radius found so far."""
        return BlastRadius(
            memories=tuple(self._memories()),
            runs=tuple(self._runs()),
            without_run=tuple(row for _seq, row in sorted(self._without_run.items())),
            erased=self._erased(),
            operations=len(self._read),
            is_cut=self._is_cut,
        )

    def _in_order(self) -> list[tuple[_Address, _Reached]]:
        return sorted(self._reached.items(), key=lambda each: each[1].reached_us)

    def _memories(self) -> Iterator[ReachedMemory]:
        for address, reached in self._in_order():
            if not isinstance(address, MemoryAddress):
                continue
            writes = reached.operations
            first = writes[0] if writes else None
            yield ReachedMemory(
                address=address,
                reached_us=reached.reached_us,
                hops=reached.hops,
                through=cast("RunAddress | None", reached.through),
                writes=writes,
                deletions=tuple(reached.deletions),
                customer=None if first is None else self._customer(first),
                origin=None if first is None else origin_of(first),
            )

    def _runs(self) -> Iterator[ReachedRun]:
        for address, reached in self._in_order():
            if isinstance(address, RunAddress):
                yield ReachedRun(
                    address=address,
                    reached_us=reached.reached_us,
                    hops=reached.hops,
                    through=cast("MemoryAddress", reached.through),
                    recalls=reached.operations,
                )

    def _customer(self, row: AuditRow) -> str | None:
        found = self._snapshot.execute(_CUSTOMER, (row.subject_uid, CUSTOMER)).fetchone()
        return None if found is None else found[1] or found[0]

    def _erased(self) -> int:
        if not self._snapshot.epoch:  # nobody was ever erased
            return 0
        # One by one: they may be millions.
        headers = self._snapshot.stream(_ERASED_SINCE, (self._since_us,))
        return sum(1 for (header,) in headers if orjson.loads(header)["detail_commit"] is not None)


def _addresses(row: AuditRow) -> list[MemoryAddress]:
    """Return the memories that *row* read, wrote or deleted."""
    place, owner = (row.store, row.collection), _owner(row, row.collection)
    return [
        MemoryAddress(*place, each.memory_id, owner or _owner(row, each.memory_id))
        for each in row.memories
    ]


def _owner(row: AuditRow, name: str | None) -> str | None:
    """Return the customer, where *name* is the same for each of them."""
    return row.subject_uid if name and _UNSPECIFIC_ID in name else None


def origin_of(row: AuditRow) -> str | None:
    """Return the label of where a write came from, that was sealed with it."""
    label: str | None = orjson.loads(row.header).get("origin")
    return label
