"""
A journal as its operator sees it: waiting writes, parked ones, and their fate.

It works on the file alone, beside the applications that use it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ...telemetry.files.permissions import permission_problem
from ..errors import ConfigurationError, MnemoscopeError
from .journal import HUNG_S, is_at_work
from .journal_file import BLANK, TORN, JournalError, JournalFile, is_no_room, looking
from .processes import ENDED, set_aside_ended
from .records import Sealer, Write

_FULL = "cannot be written: the disk is full"
_LEAST_BYTES = 64 * 1024
"""A disk with less than this is full: SQLite needs as much beside the file to read it."""

_NO_JOURNAL = "is no journal of this version: choose another file"
_REASONS = {
    "SQLITE_NOTADB": _NO_JOURNAL,
    "SQLITE_ERROR": _NO_JOURNAL,
    "SQLITE_CORRUPT": "is damaged: move it away, and a new one is made",
    "SQLITE_BUSY": "is being written by another process all the time: try again",
    "SQLITE_FULL": _FULL,
    TORN: "was being written when this process was forked: fork before the first call, or start "
    "the process anew",
    BLANK: "is empty: see that its disk has room, and start the application again",
}

_COLUMNS = (
    "waiting.seq, queue.store, queue.address, created_ns, in_doubt, lands_until_s, parked, "
    "shadowed, length(sealed) + length(touches), waiting.id, sealed"
)
_FROM = "FROM waiting JOIN queue ON queue.id = waiting.queue"


class InspectionError(MnemoscopeError):
    """The operator's request cannot be carried out. One line says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptWrite:
    """
    A write in the journal.

    Attributes:
        seq: Its place in the order of all.
        store: Name of the store that it is for.
        database: The database, as the journal has it.
        since_ns: When it was asked for, nanoseconds since 1970 UTC.
        in_doubt: The store may have taken it already.
        in_flight: The store is at work on it now, as far as is known.
        parked: Why it was set aside, or None.
        shadowed: A deletion since may have covered it.
        write: What it is. None: the key does not open it.
    """

    seq: int
    store: str
    database: str
    since_ns: int
    in_doubt: bool
    in_flight: bool
    parked: str | None
    shadowed: bool
    size_bytes: int
    write: Write | None = field(default=None, repr=False)

    @property
    def method(self) -> str | None:
        """The client's method, if the key opens it."""
        return None if self.write is None else self.write.method


class DatabaseTotals(NamedTuple):
    """
    What a journal has for one database.

    Attributes:
        store: Name of the store that it is.
        database: The database, as the journal has it.
        parked: Writes that were set aside.
        shadowed: Those of them that a deletion since may have covered.
        in_doubt: Writes that the store may have taken already.
        in_flight: Writes that the store is at work on now, as far as is known.
        size_bytes: What all of them take up.
        oldest_ns: Since when the oldest of those that wait does, or None.
    """

    store: str
    database: str
    waiting: int
    parked: int
    shadowed: int
    in_doubt: int
    in_flight: int
    size_bytes: int
    oldest_ns: int | None


class Refused(NamedTuple):
    """A write that is not made again: why."""

    write: KeptWrite
    reason: str


@dataclass(frozen=True, slots=True)
class Retried:
    """The outcome of `Inspection.retry`."""

    writes: list[KeptWrite]
    refused: list[Refused]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSelection:
    """
    Some of the writes in a journal.

    Attributes:
        all_parked: Instead: all that were set aside.
        database: Of these, those for this database only.
    """

    seqs: Sequence[int] = ()
    all_parked: bool = False
    database: str | None = None


class Inspection:
    """
    A journal, looked at from outside.

    Args:
        key: What its writes are sealed under, if that is known.
        clock: Monotonic seconds, the same for all processes of the machine.

    Raises:
        InspectionError: There is none, or it cannot be used.
    """

    def __init__(
        self, path: Path, *, key: bytes | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not path.exists():
            raise InspectionError(
                f"there is no journal at {path}: an application makes it as it starts"
            )
        objection = problem(path)
        if objection:
            raise InspectionError(f"the journal {path} {objection}")
        self.path = path
        self._sealer = None if key is None else Sealer(key)
        self._clock = clock
        # An operator may only be allowed to read: then the list shows what the next application
        # sets aside.
        with suppress(OSError, ConfigurationError), closing(JournalFile(path)) as file:
            file.with_room(lambda: _set_aside_ended(file))

    # -- looking -----------------------------------------------------------------------------------

    def totals(self, database: str | None = None) -> list[DatabaseTotals]:
        """
        Return what there is for each database, by name, or for *database* alone.

        Raises:
            InspectionError: It cannot be read, or there is no such database.
        """
        now = self._clock()
        wanted, given = _where(WriteSelection(database=database))
        with self._reading() as connection:
            _check_database(connection, database)
            rows = connection.execute(
                "SELECT store, address, sum(parked IS NULL), sum(parked IS NOT NULL), "
                "sum(shadowed), sum(in_doubt), sum(lands_until_s > ? AND lands_until_s <= ?), "
                "sum(length(sealed) + length(touches)), "
                f"min(CASE WHEN parked IS NULL THEN created_ns END) {_FROM} {wanted} "
                "GROUP BY queue.id ORDER BY store, address",
                (now, now + HUNG_S, *given),
            ).fetchall()
        return [DatabaseTotals(*row) for row in rows]

    def writes(
        self, *, database: str | None = None, parked: bool = False, limit: int
    ) -> list[KeptWrite]:
        """
        Return the first writes in order, as many as *limit*.

        Args:
            database: Of this one only.
            parked: Only what was set aside.
            limit: Most writes.

        Raises:
            InspectionError: It cannot be read.
        """
        wanted, given = _where(WriteSelection(all_parked=parked, database=database))
        with self._reading() as connection:
            return list(self._kept(connection, f"{wanted} ORDER BY seq LIMIT ?", (*given, limit)))

    def write(self, seq: int) -> KeptWrite:
        """
        Return the write at the place *seq*.

        Raises:
            InspectionError: There is none, or it cannot be read.
        """
        with self._reading() as connection:
            (found,) = self._chosen(connection, WriteSelection(seqs=(seq,)))
        return found

    # -- deciding ----------------------------------------------------------------------------------

    def retry(self, choice: WriteSelection, *, force: bool = False) -> Retried:
        """
        Have writes that were set aside wait again, at their places in the order.

        Args:
            choice: Which.
            force: Also those that a deletion since may have covered.

        Raises:
            InspectionError: One of them is not there, or the file cannot be written.
        """
        with _as_inspection_error(self.path), closing(JournalFile(self.path)) as file:
            return file.with_room(lambda: self._retry(file, choice, force=force))

    def _retry(self, file: JournalFile, choice: WriteSelection, *, force: bool) -> Retried:
        with file.writing() as connection:
            found = self._chosen(connection, choice)
            # In the transaction that changes them: a deletion may come in between.
            refused = [Refused(each, why) for each in found if (why := _no_retry(each, force))]
            kept_back = {each.write.seq for each in refused}
            again = [each for each in found if each.seq not in kept_back]
            connection.executemany(
                "UPDATE waiting SET parked = NULL, cause = NULL, tries = 0 WHERE seq = ?",
                [(each.seq,) for each in again],
            )
        return Retried([replace(each, parked=None) for each in again], refused)

    def drop(self, choice: WriteSelection) -> list[KeptWrite]:
        """
        Delete writes for good, and return them. What they were is overwritten in the file.

        No event tells of it, since there is no scope: whoever asks for it must tell.

        Raises:
            InspectionError: One of them is not there, or the file cannot be written.
        """
        with _as_inspection_error(self.path), closing(JournalFile(self.path)) as file:
            found = file.with_room(lambda: self._drop(file, choice))
            with suppress(OSError):
                file.erase()  # else whoever writes next does
        return found

    def _drop(self, file: JournalFile, choice: WriteSelection) -> list[KeptWrite]:
        with file.writing() as connection:
            found = self._chosen(connection, choice)
            connection.executemany(
                "DELETE FROM waiting WHERE seq = ?", [(each.seq,) for each in found]
            )
        return found

    # -- the file ----------------------------------------------------------------------------------

    def _chosen(self, connection: sqlite3.Connection, choice: WriteSelection) -> list[KeptWrite]:
        _check_database(connection, choice.database)
        if choice.all_parked:
            wanted, given = _where(choice)
            return list(self._kept(connection, f"{wanted} ORDER BY seq", given))
        return [
            self._one(connection, replace(choice, seqs=(seq,)))
            for seq in dict.fromkeys(choice.seqs)
        ]

    def _one(self, connection: sqlite3.Connection, choice: WriteSelection) -> KeptWrite:
        found = next(self._kept(connection, *_where(choice)), None)
        if found is None:
            there = "for that database " if choice.database else ""
            raise InspectionError(
                f"there is no write {choice.seqs[0]} {there}in the journal (any more): nothing was "
                "done; see mnemoscope journal list"
            )
        return found

    def _kept(
        self, connection: sqlite3.Connection, condition: str, given: Iterable[object]
    ) -> Iterator[KeptWrite]:
        now = self._clock()
        query = f"SELECT {_COLUMNS} {_FROM} {condition}"
        for seq, store, address, created_ns, in_doubt, lands_s, *rest in connection.execute(
            query, tuple(given)
        ):
            parked, shadowed, size_bytes, write_id, sealed = rest
            yield KeptWrite(
                seq=seq,
                store=store,
                database=address,
                since_ns=created_ns,
                in_doubt=bool(in_doubt),
                in_flight=is_at_work(lands_s, now),
                parked=parked,
                shadowed=bool(shadowed),
                size_bytes=size_bytes,
                write=self._opened(sealed, write_id),
            )

    def _opened(self, sealed: bytes, write_id: str) -> Write | None:
        if self._sealer is None:
            return None
        try:
            return self._sealer.opened(sealed, write_id)
        except ValueError:
            return None

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        with _as_inspection_error(self.path), looking(self.path) as connection:
            yield connection


def _set_aside_ended(file: JournalFile) -> None:
    with file.writing() as connection:
        set_aside_ended(connection, file.path)


def problem(path: Path) -> str | None:
    """Return why the journal at *path* cannot be used, to follow its name; None: it can be read."""
    try:
        objection = permission_problem(path)
        if objection:
            return objection
        with looking(path) as connection:
            connection.execute("SELECT 1 FROM waiting, queue, forgotten LIMIT 1").fetchone()
    except FileNotFoundError as exc:
        return _FULL if _is_full(path) else reason(exc)
    except OSError as exc:
        return reason(exc)
    return None


def reason(exc: OSError) -> str:
    """Return what *exc* says of a journal, to follow its name."""
    if isinstance(exc, JournalError):
        if (exc.reason == BLANK or is_no_room(exc)) and _is_full(exc.path):
            return _FULL
        return _REASONS.get(exc.reason, f"cannot be used ({exc.reason})")
    return f"cannot be used: {(exc.strerror or type(exc).__name__).lower()}"


def _is_full(path: Path) -> bool:
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    has_no_inode = disk.f_files > 0 and disk.f_favail == 0  # where these are counted at all
    return has_no_inode or disk.f_bavail * disk.f_frsize < _LEAST_BYTES


@contextmanager
def _as_inspection_error(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as exc:
        raise InspectionError(f"the journal {path} {reason(exc)}") from exc
    except ConfigurationError as exc:
        raise InspectionError(str(exc)) from exc


def _where(choice: WriteSelection) -> tuple[str, tuple[object, ...]]:
    conditions: list[str] = []
    given: list[object] = []
    if choice.all_parked:
        conditions.append("parked IS NOT NULL")
    if choice.database is not None:
        conditions.append("address = ?")
        given.append(choice.database)
    for seq in choice.seqs:
        conditions.append("seq = ?")
        given.append(seq)
    return f"WHERE {' AND '.join(conditions)}" if conditions else "", tuple(given)


def _check_database(connection: sqlite3.Connection, database: str | None) -> None:
    if database is None:
        return
    known = connection.execute("SELECT 1 FROM queue WHERE address = ?", (database,)).fetchone()
    if known is None:
        raise InspectionError(
            "there is no such database in the journal: mnemoscope journal list says how they are "
            "called"
        )


def _no_retry(write: KeptWrite, force: bool) -> str | None:  # noqa: FBT001 - the user's own
    if write.parked is None:
        return "it was not set aside, and waits already"
    if write.parked == ENDED:
        return f"{ENDED}, and its database with it: it can only be dropped"
    if write.shadowed and not force:
        return "a deletion since may have covered it: drop it, or bring it back with --force"
    return None
