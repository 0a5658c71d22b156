"""
The audit trail: what was done to a customer's memory, and when. The fifth sink writes it.

This is the whole of what other packages see of it. One log holds all tenants: a writer's counter
runs over all of them, so that one sequence makes every lost event visible. A database is behind it,
SQLite or PostgreSQL.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..telemetry.event import Event, OperationClass
from ..telemetry.fork import reset_after_fork
from ..telemetry.fork_guard import ForkGuard
from ..telemetry.subject import SubjectKeys
from . import checkpoints, reading, retention
from .checkpoints import Announce
from .dialect import Writing, open_database
from .keys import Keyring
from .people import People
from .reading import By, Remembered, Spend, StoreLatency
from .rows import AuditRow
from .sealing import Draft, draft
from .snapshot import Snapshot
from .tree import StoredHashes
from .writer import Head, Writer

RETENTION_DAYS = 400
"""After which events may be removed, unless a setting says otherwise."""

_DAY_US = 86_400_000_000
_NEVER_US = 2**62


class AuditLog:
    """
    The audit trail in one database. Opens nothing until it is first written or read. Thread-safe.

    Args:
        url: ``sqlite:///path``, the path, or ``postgresql://…``.
        keys: What turns customers into the aliases that are stored.
        previous: Keys before those, which the log may have been written with.
        clock_ns: Wall clock.
        retention_days: After which events may be removed; 0: never.

    Attributes:
        url: Where it is. May hold a password: for opening it again, not for showing.
        path: The file, where it is one.
        label: What errors call it.
        ring: All its keys.

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
    ) -> None:
        self.url = url
        self._database = open_database(url)
        self.path = self._database.path
        self.label = self._database.label
        self.ring = Keyring(keys, previous)
        self.retention_days = retention_days
        self._clock_ns = clock_ns
        self._writer = Writer(
            self._database,
            self.ring,
            clock_ns=clock_ns,
            retention_us=retention_days * _DAY_US or _NEVER_US,
        )
        self._guard = ForkGuard()
        reset_after_fork(self)

    # -- writing -----------------------------------------------------------------------------------

    def append(self, events: Sequence[Event]) -> int:
        """
        Record *events* durably, all of them or none. Those already recorded are left as they are.

        Returns:
            How many were new.

        Raises:
            AuditError: None of them was recorded, as far as can be known: it is safe to ask again.
        """
        drafts = [draft(event) for event in events]
        with self._guard, self._fresh_after_failure():
            return self._writer.append(drafts).added

    def record(self, drafts: Sequence[Draft]) -> int:
        """
        Record what was drafted before, as `append` does, and return the size of the log.

        Raises:
            AuditError: None of it was recorded, as far as can be known.
        """
        with self._guard, self._fresh_after_failure():
            return self._writer.append(drafts).size

    def append_log_event(self, name: str, data: Mapping[str, Any]) -> int:
        """
        Record an event about the log itself, and return its number.

        Args:
            name: What happened, dotted: ``verify.ran``.
            data: More about it: JSON without fractions, about nobody. It can never be erased.

        Raises:
            AuditError: It was not recorded.
        """
        with self.writing() as (connection, head):
            return self._writer.note(connection, head, name, dict(data)).size - 1

    @contextmanager
    def writing(self) -> Generator[tuple[Writing, Head]]:
        """
        Return a transaction that holds the end of the log, for the modules of this package.

        Raises:
            AuditError: Nothing of it was stored, as far as can be known.
        """
        with (
            self._guard,
            self._fresh_after_failure(),
            self._writer.transaction() as (connection, head),
        ):
            yield connection, head

    def note(self, connection: Writing, head: Head, name: str, data: Mapping[str, Any]) -> Head:
        """Record an event about the log itself as a part of `writing`; return its new end."""
        return self._writer.note(connection, head, name, dict(data))

    def checkpoint_now(self) -> str:
        """
        Sign the log as it is, keep the note and return it: C2SP checkpoint.

        Raises:
            AuditError: It was not kept.
        """
        return checkpoints.sign(self)[0]

    def checkpoint(self, announce: Announce) -> tuple[str, int]:
        """
        Sign the log as it is, and keep the note once *announce* has sent it elsewhere.

        Returns:
            The note, and the size of the log.

        Raises:
            AuditError: It was not kept.
        """
        return checkpoints.sign(self, announce)

    def prune(self, *, at_once: bool = True) -> int:
        """
        Remove what is older than `retention_days`, by whole months, and return how many events.

        Args:
            at_once: All of it; else as much as does not keep others waiting.

        Raises:
            AuditError: What was not removed until then is still there.
        """
        if not self.retention_days or not self._database.exists():
            return 0
        before_us = retention.month_before(self.now_us(), self.retention_days)
        removed = count = retention.prune_some(self, before_us)
        while at_once and count:
            count = retention.prune_some(self, before_us)
            removed += count
        if at_once and removed:
            self.scrub()
        return removed

    def scrub(self) -> None:
        """
        See that what was deleted is in no file: write-ahead log, free pages, dead rows.

        Raises:
            AuditError: It could not be done just now: somebody reads. What was deleted is gone for
                every reader that begins now.
        """
        with self._guard, self._fresh_after_failure():
            self._database.scrub()

    def now_us(self) -> int:
        """Return the time, microseconds since 1970 UTC."""
        return self._clock_ns() // 1_000

    def close(self) -> None:
        """Close the database. A later `append` opens it again."""
        with self._guard:
            self._close_writer()

    # -- reading -----------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Generator[Snapshot]:
        """
        Return one moment of the log, for queries of one's own.

        Raises:
            AuditError: There is no such database, or it cannot be read.
        """
        with self._database.reading() as connection:
            yield Snapshot(connection, self.ring, self.label)

    def history(self, customer: str, tenant: str | None = None) -> Iterator[AuditRow]:
        """
        Yield all that was done to the memory of one customer of one tenant, oldest first.

        Streams, and sees the log as it was when the iteration began. A *tenant* of None means
        operations that named none, not all tenants.

        Raises:
            AuditError: There is no such database, or other keys were used to write it: then
                nobody can be found in it, which is not the same as nobody being in it.
        """
        with self.reading() as snapshot:
            yield from reading.history(snapshot, customer, tenant)

    def rows(
        self,
        *,
        since_us: int | None = None,
        until_us: int | None = None,
        run: str | None = None,
        memory_id: str | None = None,
        subject_uid: str | None = None,
    ) -> Iterator[AuditRow]:
        """
        Yield the operations that fit everything given, in order of recording. Streams.

        Args:
            since_us: Happened then or later; microseconds since 1970 UTC.
            until_us: Happened before.
            run: Part of this run.
            memory_id: Read or wrote this memory.
            subject_uid: In this customer's name: see `People.resolve`.

        Raises:
            AuditError: There is no such database, or it cannot be read.
        """
        with self.reading() as snapshot:
            yield from reading.rows(
                snapshot,
                since_us=since_us,
                until_us=until_us,
                run=run,
                memory_id=memory_id,
                subject_uid=subject_uid,
            )

    def memories(self, customer: str, tenant: str | None = None) -> list[Remembered]:
        """Return the memories in a customer's `history`: when written, read and forgotten."""
        return reading.memories(self.history(customer, tenant))

    def latency(self, op_class: OperationClass | None = None) -> list[StoreLatency]:
        """Return how long each store took, for one class of operations or all; no model calls."""
        with self.reading() as snapshot:
            return reading.latency(snapshot, op_class)

    def spend(self, by: By = "feature") -> list[Spend]:
        """Return tokens and cost by feature, node or model, dearest first."""
        with self.reading() as snapshot:
            return reading.spend(snapshot, by)

    def count(self) -> int:
        """Return how many operations are recorded."""
        with self.reading() as snapshot:
            return snapshot.operations

    @property
    def subjects(self) -> People:
        """The customers in the log."""
        return People(self)

    @contextmanager
    def hashes(self) -> Generator[StoredHashes]:
        """Return the log's Merkle tree at one moment, for proofs."""
        with self.reading() as snapshot:
            yield StoredHashes(snapshot)

    def check(self) -> str:
        """
        Say what the trail holds, having tried whether it could be added to. Changes nothing.

        Raises:
            AuditError: It cannot be read or written, or was written with other keys.
        """
        self._database.check_writable()
        if not self._database.exists():
            return f"{self.path or self.label} is made with the first event"
        with self.reading() as snapshot:
            snapshot.check_keys()
            place, state = self.path or self.label, self._state(snapshot)
            return f"{snapshot.operations:,} events in {place}{state}"

    def _state(self, snapshot: Snapshot) -> str:
        signed_us = snapshot.signed_us()
        said = ""
        if signed_us is not None:
            said = f", signed {max(0, self.now_us() - signed_us) // 1_000_000:,} s ago"
        left = snapshot.known_by_previous_keys()
        if left:
            said += f"; {left:,} customers are known by a previous key alone: keep it"
        return said

    # -- the connection ----------------------------------------------------------------------------

    @contextmanager
    def _fresh_after_failure(self) -> Generator[None]:
        try:
            yield
        except BaseException:
            # Whatever it was, the next attempt begins with a fresh connection.
            self._close_writer()
            raise

    def _close_writer(self) -> None:
        self._database.close()

    def forked(self) -> None:
        """Let go of the parent's connection in a child, and be another writer."""
        self._database.abandon()
        self._writer.forked()
