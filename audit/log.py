"""
The audit log: every operation on memory, sealed. The fifth sink writes it.

Other packages see this facade alone. One log holds all tenants: a writer's counter
runs over all of them, so that one sequence makes every lost event visible. A database is behind it,
SQLite or PostgreSQL.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

from ..telemetry.event.event import Event, OperationClass
from ..telemetry.event.subject import SubjectKeys
from .database.errors import AuditError, DatabaseMissingError
from .database.opening import open_database
from .queries import origins, reading
from .queries.blast_radius import MOST_OPERATIONS
from .queries.reading import By, Remembered, Spend, StoreLatency
from .queries.references import references
from .queries.runs import FoundRuns, find_runs, merged_runs
from .record.keys import Keyring
from .record.lived_time import DAY_US
from .record.rows import AuditRow
from .record.sealing import UnplacedEvent, draft
from .record.subjects import NOBODY, KnownAliases
from .store import checkpoints, retention
from .store.checkpoints import Announce
from .store.customers import Customers
from .store.person_lookup import (
    CustomerQuery,
    InStores,
    OtherSpellings,
    Person,
    find_person,
    person_of,
)
from .store.snapshot import FindUnnamed, Snapshot
from .store.tables import LogTables
from .store.tree import StoredHashes

RETENTION_DAYS = 400
"""After which events may be removed, unless a setting says otherwise."""

_NEVER_US = 2**62


class AuditLog:
    """
    The audit trail in one database. Opens nothing until it is first written or read. Thread-safe.

    Args:
        url: ``sqlite:///path``, the path, or ``postgresql://…``.
        keys: The keys of the aliases under which customers are stored.
        previous: Earlier keys, which the log may have been written with.
        clock_ns: Wall clock.
        retention_days: After which events may be removed; 0: never.
        retention_reason: Why that is sooner than the law's six months, if it is.
        prepare: Called once, before the first write.
        trail: What it is a shard of. None: nothing.
        unnamed: With a trail: see `Snapshot`.

    Attributes:
        trail: What it is a shard of, or itself.
        url: Its address. May hold a password: for opening it again, not for showing.
        path: The file, where it is one.
        label: Its name in errors.
        ring: All its keys.
        spool_path: The spool of this machine's processes, where it is known.
        relay_folder: Where they leave their events to a relay, if they do.
        tables: Its transactions, for the modules of this package.

    Raises:
        ValueError: The URL is not one.
    """

    def __init__(
        self,
        url: str | Path,
        keys: SubjectKeys,
        *,
        previous: Sequence[SubjectKeys] = (),
        clock_ns: Callable[[], int] = time.time_ns,
        retention_days: int = RETENTION_DAYS,
        retention_reason: str = "",
        prepare: Callable[[], object] | None = None,
        trail: AuditLog | None = None,
        unnamed: FindUnnamed | None = None,
    ) -> None:
        database = open_database(url)
        self.url = url
        self.path = database.path
        self.label = database.label
        self.ring = Keyring(keys, previous)
        self.retention_days = retention_days
        self.retention_reason = retention_reason
        self.trail = trail or self
        self.spool_path: Path | None = None
        self.relay_folder: Path | None = None
        self.tables = LogTables(
            database,
            self.ring,
            clock_ns=clock_ns,
            retention_us=retention_days * DAY_US or _NEVER_US,
            prepare=prepare,
            unnamed=unnamed,
        )

    # -- writing -----------------------------------------------------------------------------------

    def append(self, events: Sequence[Event]) -> int:
        """
        Record *events* durably, all of them or none. Those already recorded are left as they are.

        Returns:
            How many were new.

        Raises:
            AuditError: None of them was recorded, as far as can be known: it is safe to ask again.
        """
        return self.tables.append([draft(event) for event in events]).added

    def append_about(self, uid: str, about: Event, *others: Event) -> int:
        """
        Record *about*, which names nobody, as an event about the subject *uid*; else as `append`.

        For whoever knows a customer by what the trail has of them, and by no id.

        Args:
            uid: As details name it.
            about: The event that becomes theirs.
            others: Events that are recorded with it, as they are.

        Raises:
            AuditError: They were erased; or as of `append`.
        """
        with self.reading() as snapshot:
            aliases = snapshot.aliases(uid)
        if not aliases:
            raise AuditError("a customer who was erased is not written about")
        theirs = draft(about)
        found = {key_id: alias for key_id, alias, _kind in aliases}
        theirs.subject, theirs.alias = KnownAliases(found, {}), aliases[0][1]
        theirs.header.fields["n_subjects"] = int(aliases[0][2] != NOBODY)
        return self.tables.append([theirs, *map(draft, others)]).added

    def record(self, drafts: Sequence[UnplacedEvent], *, is_quiet: bool = False) -> int:
        """
        Record what was drafted before, as `append` does, and return the size of the log.

        Args:
            drafts: In order.
            is_quiet: Whether no further event is known of: the end of the log is signed soon.

        Raises:
            AuditError: None of it was recorded, as far as can be known.
        """
        return self.tables.append(drafts, is_quiet=is_quiet).size

    def append_log_event(self, name: str, data: Mapping[str, Any]) -> int:
        """
        Record an event about the log itself, and return its number.

        Args:
            name: What happened, dotted: ``verify.ran``.
            data: More about it: JSON without fractions, about nobody. It can never be erased.

        Raises:
            AuditError: It was not recorded.
        """
        with self.tables.writing() as (connection, head):
            return self.tables.note(connection, head, name, data).size - 1

    def checkpoint_now(self) -> str:
        """
        Sign the log as it is, keep the note and return it: C2SP checkpoint.

        Raises:
            AuditError: It was not kept.
        """
        return checkpoints.sign(self.tables)[0]

    def checkpoint(self, announce: Announce) -> tuple[str, int]:
        """
        Sign the log as it is, at intervals; have *announce* send each note, and keep some.

        Returns:
            The note, and the size of the log.

        Raises:
            AuditError: It was not kept.
        """
        return checkpoints.sign(self.tables, announce, is_regular=True)

    def prune(self, *, at_once: bool = True) -> int:
        """
        Remove what is older than `retention_days`, by whole months, and return how many events.

        Nothing goes on the word of one clock: the log has to have lived through that time, with
        events spread over it, and for a day since a clock disagreed with it.

        Args:
            at_once: All of it; else as much as does not keep others waiting.

        Raises:
            AuditError: What was not removed until then is still there.
        """
        if not self.retention_days or not self.tables.database.exists():
            return 0
        days, reason = self.retention_days, self.retention_reason
        removed = count = retention.prune_some(self.tables, days, reason)
        while at_once and count:
            count = retention.prune_some(self.tables, days, reason)
            removed += count
        if at_once and removed:
            self.scrub()
        return removed

    def scrub(self) -> None:
        """
        Rid the files of what was deleted: write-ahead log, free pages, dead rows.

        Raises:
            AuditError: Somebody reads, so that it could not be done. What was deleted is gone for
                every reader that begins now.
        """
        self.tables.scrub()

    def now_us(self) -> int:
        """Return the time, microseconds since 1970 UTC."""
        return self.tables.now_us()

    def close(self) -> None:
        """Close the database. A later `append` opens it again."""
        self.tables.close()

    # -- reading -----------------------------------------------------------------------------------

    def reading(self, *, as_it_is: bool = False) -> AbstractContextManager[Snapshot]:
        """
        Return one moment of the log, for queries of one's own; see `LogTables.reading`.

        Raises:
            AuditError: There is no such database, or it cannot be read.
            TamperedError: It has events, and the row that counts them was taken away.
        """
        return self.tables.reading(as_it_is=as_it_is)

    def person(
        self,
        customer: str,
        tenant: str | None = None,
        *,
        also: Sequence[str] = (),
        all_tenants: bool = False,
        spellings: OtherSpellings = OtherSpellings.ASK,
    ) -> Person:
        """
        Return the customer that an id names, in whatever tenant and spelling the log knows them.

        Args:
            customer: The id.
            tenant: Its tenant; empty: that of operations that named none. None: wherever it is.
            also: Further ids of the same person.
            all_tenants: People of that id in several tenants are one.
            spellings: What is done with other spellings of the id: in upper case, for example.

        Raises:
            UnknownSubjectError: Nobody is known by one of the ids.
            AmbiguousSubjectError: Several people are: they are listed.
            AuditError: There is no such database, or other keys were used to write it.
        """
        query = CustomerQuery(
            customer=customer,
            tenant=tenant,
            also=tuple(also),
            all_tenants=all_tenants,
            spellings=spellings,
        )
        return self.find(query)

    def find(self, query: CustomerQuery, stores: InStores | None = None) -> Person:
        """
        Return the customer of *query*, as `person` does, by what live *stores* hold as well.

        Raises as `person` does.
        """
        with self.moments() as (snapshot, *beside):
            return find_person(snapshot, query, stores, beside=beside)

    @property
    def shards(self) -> Sequence[AuditLog]:
        """The logs that it consists of: itself, unless tenants are spread over several."""
        return (self,)

    @property
    def verdicts(self) -> AuditLog:
        """The log that verdicts are in, with the decisions on them: one, of however many shards."""
        return self

    def parts_of(self, person: Person) -> list[tuple[AuditLog, Person]]:
        """Return the logs that have something of *person*, with what they know of them."""
        return [(self, person)]

    @contextmanager
    def moments(self) -> Generator[list[Snapshot]]:
        """
        Return one moment of each of its logs.

        Raises:
            AuditError: One cannot be read.
        """
        with self.reading() as snapshot:
            yield [snapshot]

    def history(self, customer: str | Person, tenant: str | None = None) -> Iterator[AuditRow]:
        """
        Yield all that was done to the memory of one customer, oldest first.

        Streams, and sees the log as it was when the iteration began. What names nobody is in it
        where it was done by id alone to a memory that was written for the customer: what was only
        recalled for them is not theirs for that.

        Args:
            customer: What `person` returned, or an id for it.
            tenant: With an id: see `person`.

        Raises:
            UnknownSubjectError: Nobody is known by that id.
            AmbiguousSubjectError: Several people are.
            AuditError: There is no such database, or other keys were used to write it: then
                no customer can be found in it, which is not the same as none being in it.
        """
        with self.moments() as snapshots:
            person = person_of(snapshots[0], customer, tenant, snapshots[1:])
            found = [
                reading.history_of(each, person.uids, person.tenants, written=True)
                for each in snapshots
            ]
            yield from heapq.merge(*found, key=attrgetter("occurred_us"))

    def rows(
        self,
        *,
        since_us: int | None = None,
        until_us: int | None = None,
        run: str | None = None,
        memory_id: str | None = None,
        subject_uid: str | None = None,
        with_changed: bool = False,
    ) -> Iterator[AuditRow]:
        """
        Yield the operations that fit everything given, in order of recording. Streams.

        Args:
            since_us: Happened then or later; microseconds since 1970 UTC.
            until_us: Happened before.
            run: Part of this run.
            memory_id: Read or wrote this memory.
            subject_uid: In this customer's name: see `Customers.resolve`.
            with_changed: Also what was changed after it was sealed, if it can be read: for who
                looks for changes.

        Raises:
            AuditError: There is no such database, or it cannot be read.
            TamperedError: One of them was changed after it was sealed.
        """
        chosen = {"since_us": since_us, "until_us": until_us, "run": run}
        chosen |= {"memory_id": memory_id, "subject_uid": subject_uid}
        with self.moments() as snapshots:
            found = [reading.rows(each, with_changed=with_changed, **chosen) for each in snapshots]
            yield from heapq.merge(*found, key=attrgetter("recorded_us"))

    def runs(
        self,
        *,
        since_us: int,
        until_us: int,
        run: str | None = None,
        agent: str | None = None,
        feature: str | None = None,
        most: int = MOST_OPERATIONS,
    ) -> FoundRuns:
        """
        Return the runs with an operation in a period that fits everything given, the latest first.

        Args:
            since_us: The start of the period; microseconds since 1970 UTC.
            until_us: Its end.
            run: The name of the run, which is looked for in the whole period.
            agent: One of its agents.
            feature: One of its features.
            most: Without a name, so many events are read at most: the latest.

        Raises:
            AuditError: There is no such database, or it cannot be read.
        """
        chosen: dict[str, Any] = {"since_us": since_us, "until_us": until_us, "run": run}
        chosen |= {"agent": agent, "feature": feature, "most": most}
        with self.moments() as snapshots:
            return merged_runs(find_runs(each, **chosen) for each in snapshots)

    def memories(self, customer: str | Person, tenant: str | None = None) -> list[Remembered]:
        """Return the memories in a customer's `history`: when written, read and forgotten."""
        return reading.memories(self.history(customer, tenant))

    def latency(self, op_class: OperationClass | None = None) -> list[StoreLatency]:
        """Return how long each store took, for one class of operations or all; no model calls."""
        with self.moments() as snapshots:
            return reading.latency(snapshots, op_class)

    def spend(self, by: By = "feature") -> list[Spend]:
        """Return tokens and cost by feature, node or model, dearest first."""
        with self.moments() as snapshots:
            return reading.spend(snapshots, by)

    def labels(self, tags: Sequence[str]) -> dict[str, tuple[int, int]]:
        """
        Return when each of *tags* was written last, in µs since 1970, and its trust then.

        Raises:
            AuditError: It cannot be read, or was written with other keys.
        """
        with self.begun_moments() as snapshots:
            return origins.labels(snapshots, tags)

    def references(self, names: Sequence[str]) -> dict[str, list[tuple[int, int, float]]]:
        """
        Return of each name that parts gave to events the latest: begin and end in µs, and number.

        Raises:
            AuditError: It cannot be read, or was written with other keys.
        """
        with self.begun_moments() as snapshots:
            return references(snapshots, names)

    def is_elsewhere(self, run: str, writer_id: str) -> bool:
        """
        Return whether another writer than *writer_id* has recorded something of *run*.

        Raises:
            AuditError: It cannot be read, or was written with other keys.
        """
        with self.begun_moments() as snapshots:
            return any(origins.is_elsewhere(each, run, writer_id) for each in snapshots)

    def run_headers(
        self, tenant: str | None, run: str, writer_id: str, most: int
    ) -> list[dict[str, Any]]:
        """
        Return the headers of a run's events that others than *writer_id* recorded, latest first.

        Args:
            tenant: Of this tenant. None: of none.
            run: The run.
            writer_id: The writer that is left out.
            most: How many are looked at.

        Raises:
            AuditError: It cannot be read, or was written with other keys.
        """
        with self.begun_moments() as snapshots:
            found = [origins.run_headers(each, tenant, run, writer_id, most) for each in snapshots]
            newest = heapq.merge(*found, key=itemgetter("recorded_at"), reverse=True)
            return [*islice(newest, most)]

    @contextmanager
    def begun(self, *, as_it_is: bool = False) -> Generator[Snapshot | None]:
        """Return one moment, as `reading` does. None: nothing is in it yet, or it is being made."""
        with ExitStack() as stack:
            try:
                snapshot = stack.enter_context(self.reading(as_it_is=as_it_is))
            except DatabaseMissingError:
                yield None
            else:
                yield snapshot if snapshot.size else None

    @contextmanager
    def begun_moments(self) -> Generator[list[Snapshot]]:
        """Return one moment of each of its logs that has an event by now."""
        with ExitStack() as stack:
            found = list[Snapshot]()
            with suppress(DatabaseMissingError):
                found = stack.enter_context(self.moments())
            yield [each for each in found if each.size]

    def count(self) -> int:
        """Return how many operations are recorded."""
        with self.moments() as snapshots:
            return sum(each.operations for each in snapshots)

    @property
    def subjects(self) -> Customers:
        """The customers in the log."""
        return Customers(self.tables)

    @contextmanager
    def hashes(self) -> Generator[StoredHashes]:
        """Return the log's Merkle tree at one moment, for proofs."""
        with self.reading() as snapshot:
            yield StoredHashes(snapshot)

    def check(self) -> str:
        """
        Return a line on what the trail holds, if it can be read and written. Changes nothing.

        Raises:
            AuditError: It cannot be read or written, or was written with other keys.
        """
        self.tables.database.check_writable()
        if not self.tables.database.exists():
            return f"{self.path or self.label} is made with the first event"
        with self.reading() as snapshot:
            snapshot.check_keys()
            place, state = self.path or self.label, self._state(snapshot)
            return f"{snapshot.operations:,} events in {place}{state}"

    def _state(self, snapshot: Snapshot) -> str:
        signed_us = snapshot.signed_us()
        said = ""
        if signed_us is not None:
            said = f", signed {max(0, self.tables.now_us() - signed_us) // 1_000_000:,} s ago"
        left = snapshot.known_by_previous_keys()
        if left:
            said += f"; {left:,} customers are known by a previous key alone: keep it"
        return said
