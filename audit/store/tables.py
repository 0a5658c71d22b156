"""
The tables of one log: transactions that write at its end, moments that read.

Checkpoints, customers, retention and erasure are built on this; `log.AuditLog` is the front of all.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from ...telemetry.process.fork import reset_after_fork
from ...telemetry.process.fork_lock import ForkLock
from ..database.database import AuditDatabase
from ..database.errors import AuditError, TamperedError
from ..proof.merkle import Frontier
from ..record.keys import Keyring
from ..record.lived_time import of_calendar
from ..record.sealing import UnplacedEvent
from .kept_rows import KeptRows
from .snapshot import FindUnnamed, Snapshot
from .writer import Appended, Head, Writer


@dataclass
class Removal:
    """
    The events ``[start, stop)`` that retention removes, read in steps that nobody waits for.

    Attributes:
        frontier: The tree of those that were read; what they are counted for is `carried`.
        leaves: Of the last step, from `at` on.
        gone: What is gone of their details, and how many `details` are there, as of the `moment`
            of its epoch and first event, in which all were read.
    """

    start: int
    stop: int
    frontier: Frontier = field(default_factory=Frontier)
    carried: dict[str, Any] = field(default_factory=dict[str, Any])
    at: int = 0
    leaves: Sequence[bytes] = ()
    gone: int = 0
    details: int = 0
    moment: tuple[int, int] | None = None


class LogTables:
    """
    The tables of one log. Thread-safe, and opens nothing until it is used.

    Args:
        clock_ns: Wall clock.
        retention_us: After which details may be removed.
        prepare: Called once, before the first write. What it raises, the write does.

    Attributes:
        database: Which. Transactions are for `writing` and `reading`.
        label: The log's name in errors.
        removal: What retention is about to remove.
        unnamed: See `Snapshot`.
    """

    def __init__(
        self,
        database: AuditDatabase,
        ring: Keyring,
        *,
        clock_ns: Callable[[], int],
        retention_us: int,
        prepare: Callable[[], object] | None = None,
        unnamed: FindUnnamed | None = None,
    ) -> None:
        self.ring = ring
        self.label = database.label
        self.database = database
        # A signed moment that is no date would be taken for somebody else's change to the log.
        self._clock_ns: Callable[[], int] = lambda: of_calendar(clock_ns() // 1_000) * 1_000
        self._prepare = prepare
        self.unnamed = unnamed
        self._writer = Writer(database, ring, clock_ns=self._clock_ns, retention_us=retention_us)
        self.removal: Removal | None = None
        self._guard = ForkLock()
        reset_after_fork(self)

    def append(self, drafts: Sequence[UnplacedEvent], *, is_quiet: bool = False) -> Appended:
        """
        Record *drafts* durably, all or none, save those that were recorded before.

        Args:
            drafts: In order.
            is_quiet: Whether no further event is known of: the end is signed soon.

        Raises:
            AuditError: None of them was recorded, as far as can be known.
        """
        with self._guard, self._fresh_after_failure():
            return self._writer.append(drafts, is_quiet=is_quiet)

    @contextmanager
    def writing(self) -> Generator[tuple[KeptRows, Head]]:
        """
        Return a transaction that holds the end of the log.

        Raises:
            AuditError: Nothing of it was stored, as far as can be known.
        """
        with (
            self._guard,
            self._fresh_after_failure(),
            self._writer.transaction() as (connection, head),
        ):
            yield connection, head

    def sign_end(self) -> None:
        """
        Sign the end of the log, if events were recorded from here since that was done.

        Raises:
            AuditError: It is not signed.
        """
        # Without the second a close would make a database that nobody has written to.
        if self._writer.unsigned and self.database.exists():
            with self.writing():
                pass

    def note(self, connection: KeptRows, head: Head, name: str, data: Mapping[str, Any]) -> Head:
        """Record an event about the log itself as a part of `writing`; return its new end."""
        return self._writer.note(connection, head, name, dict(data))

    @contextmanager
    def reading(self, *, as_it_is: bool = False) -> Generator[Snapshot]:
        """
        Return one moment of the log.

        Args:
            as_it_is: Whatever was changed: for who looks for changes.

        Raises:
            AuditError: There is no such database, or it cannot be read.
            TamperedError: It has events, and the row that counts them was taken away.
        """
        with self.database.reading() as connection:
            snapshot = Snapshot(connection, self.ring, self.label, self.unnamed)
            # Without that row its size is 0, which many take for a log in which nothing is yet.
            if not (as_it_is or snapshot.size) and snapshot.has_events():
                raise TamperedError("it has events, and the head that counts them was taken away")
            yield snapshot

    def scrub(self) -> None:
        """
        Rid the files of what was deleted: write-ahead log, free pages, dead rows.

        Raises:
            AuditError: Somebody reads, so that it could not be done. What was deleted is gone for
                every reader that begins now.
        """
        with self._guard, self._fresh_after_failure():
            self.database.scrub()

    def now_us(self) -> int:
        """Return the time, microseconds since 1970 UTC."""
        return self._clock_ns() // 1_000

    def close(self) -> None:
        """Sign the end, and close the connection that writes. The next use opens another."""
        with suppress(AuditError):
            self.sign_end()
        with self._guard:
            self.database.close()

    @contextmanager
    def _fresh_after_failure(self) -> Generator[None]:
        try:
            if self._prepare is not None:
                self._prepare()
                self._prepare = None
            yield
        except BaseException:
            # Whatever it was, the next attempt begins with a fresh connection.
            self.database.close()
            raise

    def forked(self) -> None:
        """Drop the parent's connection in a child, and be another writer."""
        self.database.abandon()
        self._writer.forked()
