"""
The journal's file: an SQLite database that all processes of a machine share.

A connection lives for one transaction, so none outlives a fork. The file is in rollback mode with
``secure_delete``: what was erased stays in no page, and in no log beside it. A reserve lies beside
the file, which is given up when the disk is full: what makes room in the journal needs some first.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from ...telemetry.files.permissions import permission_problem
from ...telemetry.process.fork_lock import ForkLock
from ..errors import ConfigurationError

BUSY_S = 4.0
"""Seconds to wait for another process's transaction."""

RESERVE_BYTES = 1024 * 1024
"""Size of the reserve beside the file."""

_APPLICATION_ID = 0x6D6E6A31  # "mnj1"
_VERSION = 1
_COUNTER_AT, _COUNTER_BYTES = 24, 4  # https://www.sqlite.org/fileformat.html#file_change_counter
_PRAGMAS = (
    "PRAGMA secure_delete = ON",
    # Otherwise a rollback journal could come back after a power cut and undo an erasure.
    "PRAGMA synchronous = EXTRA",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA foreign_keys = OFF",
)
_SCHEMA = (
    "PRAGMA auto_vacuum = INCREMENTAL",
    """CREATE TABLE queue (
        id INTEGER PRIMARY KEY, address TEXT NOT NULL UNIQUE, store TEXT NOT NULL
    )""",
    """CREATE TABLE waiting (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, queue INTEGER NOT NULL,
        created_ns INTEGER NOT NULL, in_doubt INTEGER NOT NULL, lands_until_s REAL NOT NULL,
        parked TEXT, shadowed INTEGER NOT NULL DEFAULT 0,
        touches TEXT NOT NULL, sealed BLOB NOT NULL
    )""",
    "CREATE INDEX waiting_in_order ON waiting (queue, parked, seq)",
    """CREATE TABLE forgotten (
        queue INTEGER NOT NULL, at_ns INTEGER NOT NULL, touches TEXT NOT NULL
    )""",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)


class JournalFile:
    """
    The file of one journal. Thread-safe; processes share it.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reserve = path.with_name(f"{path.name}.reserve")
        self._lock = ForkLock()
        self._fd = -1

    def open(self) -> None:
        """
        Create the file, readable by its owner only, if it is missing, and check that it is ours.

        Raises:
            ConfigurationError: Other users can read it, or it is no journal of this version.
            OSError: It cannot be created, opened or written.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        objection = permission_problem(self.path)
        if objection:
            raise ConfigurationError(f"the journal {self.path} {objection}")
        with self.writing():
            pass
        if self._fd == -1:
            # Never closed while the process lives: that would drop SQLite's locks on the file.
            self._fd = os.open(self.path, os.O_RDONLY)
        self.lay_reserve()

    def change_counter(self) -> bytes:
        """
        Return what differs whenever a transaction has changed the file. No transaction is begun.

        Raises:
            OSError: The file cannot be read.
        """
        return os.pread(self._fd, _COUNTER_BYTES, _COUNTER_AT)

    @contextmanager
    def writing(self, busy_s: float = BUSY_S) -> Generator[sqlite3.Connection]:
        """
        Begin a transaction, which is on the disk when it ends.

        Raises:
            OSError: It could not be made, and nothing has changed.
        """
        with self._connected(self.path, busy_s) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._check(connection)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self, busy_s: float = BUSY_S) -> Generator[sqlite3.Connection]:
        """
        Begin a transaction that reads.

        Raises:
            OSError: The file cannot be read.
        """
        with self._connected(self.path, busy_s) as connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def _connected(self, path: Path, busy_s: float) -> Generator[sqlite3.Connection]:
        with self._lock:
            try:
                connection = sqlite3.connect(
                    path, timeout=busy_s, isolation_level=None, check_same_thread=False
                )
                with closing(connection):
                    for pragma in _PRAGMAS:
                        connection.execute(pragma)
                    yield connection
            except sqlite3.Error as exc:
                name = getattr(exc, "sqlite_errorname", None) or type(exc).__name__
                raise JournalError(self.path, name) from None

    def _check(self, connection: sqlite3.Connection) -> None:
        version = tuple(number(connection, each) for each in ("application_id", "user_version"))
        if version == (_APPLICATION_ID, _VERSION):
            return
        if version != (0, 0) or number(connection, "schema_version") != 0:
            raise ConfigurationError(
                f"{self.path} is no journal of this version: choose another file"
            )
        connection.execute("COMMIT")  # how a file is vacuumed cannot be set inside a transaction
        connection.execute(_SCHEMA[0])
        connection.execute("BEGIN IMMEDIATE")
        if number(connection, "user_version") == 0:
            for statement in _SCHEMA[1:]:
                connection.execute(statement)

    # -- room --------------------------------------------------------------------------------

    def lay_reserve(self) -> None:
        """Have some room on the disk that nobody else can take, if there is any."""
        if self._reserve.exists():
            return
        try:
            fd = os.open(self._reserve, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                os.posix_fallocate(fd, 0, RESERVE_BYTES)
            finally:
                os.close(fd)
        except OSError:
            self.give_up_reserve()

    def give_up_reserve(self) -> bool:
        """Leave the reserve to the journal. False: there is none."""
        try:
            self._reserve.unlink()
        except OSError:
            return False
        return True


class JournalError(OSError):
    """
    The journal cannot be read or written. Its message quotes nothing that is in it.

    Attributes:
        reason: SQLite's name of the error.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"the journal {path} cannot be used ({reason})")
        self.reason = reason


def number(connection: sqlite3.Connection, pragma: str) -> int:
    """Return the number that a pragma tells."""
    row = connection.execute(f"PRAGMA {pragma}").fetchone()
    return int(row[0])
