"""
The journal's file: an SQLite database that all processes of a machine share.

It is in write-ahead mode with ``secure_delete``: a commit costs one sync, a reader keeps nobody,
and what was erased stays in no page. Writers take turns by a lock file, checkpoints included:
SQLite before 3.51.3 can damage a database when one connection commits while another runs a
checkpoint. A connection is never used, nor closed, after a fork: that would touch the parent's
locks. A reserve lies beside the file and is given up when the disk is full: what makes room in the
journal needs some first.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from ...telemetry.files.mapped_file import allocate
from ...telemetry.files.permissions import create_private, permission_problem
from ...telemetry.process.fork import reset_after_fork
from ...telemetry.process.fork_lock import SqliteLock
from ..errors import ConfigurationError

T = TypeVar("T")

BUSY_S = 4.0
"""Seconds to wait for other processes."""

RESERVE_BYTES = 1024 * 1024
"""Size of the reserve beside the file."""

_PIECE_BYTES = 128 * 1024
"""How much of it is given up at once: whoever filled the disk may take what is free."""

TORN = "torn"
"""The reason of a process that was forked in the middle of a write: SQLite's locks are stuck."""

BLANK = "blank"
"""Reason of a `JournalError`: who made the file could not begin it."""

_APPLICATION_ID = 0x6D6E6A31  # "mnj1"
_VERSION = 1
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    # With NORMAL the last commits are lost in WAL mode when the power fails.
    "PRAGMA synchronous = FULL",
    # What was deleted stays readable in free pages otherwise, until they are used again.
    "PRAGMA secure_delete = ON",
    # No function with side effects is called by a schema that somebody else has changed.
    "PRAGMA trusted_schema = OFF",
)
_NO_ROOM = frozenset(
    {
        "SQLITE_FULL",
        "SQLITE_IOERR_WRITE",
        "SQLITE_IOERR_SHMSIZE",
        "SQLITE_IOERR_SHMOPEN",
        # On a full disk the log or its index cannot be made, which SQLite calls so.
        "SQLITE_CANTOPEN",
    }
)
_NO_ROOM_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})
_POLL_S = 0.001
_ADDED = {  # columns that the versions before have not
    "asked_ns": "INTEGER",
    "cause": "TEXT",
    "failed_ns": "INTEGER",
    "tries": "INTEGER NOT NULL DEFAULT 0",
}
_WAITING_BY_CAUSE = (
    "CREATE INDEX IF NOT EXISTS waiting_by_cause ON waiting (queue, cause) WHERE cause IS NOT NULL"
)
_SCHEMA = (
    # A page that is freed goes back to the disk only with this, and it cannot be set later.
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
    *(f"ALTER TABLE waiting ADD COLUMN {name} {kind}" for name, kind in _ADDED.items()),
    "CREATE INDEX waiting_in_order ON waiting (queue, parked, seq)",
    _WAITING_BY_CAUSE,
    """CREATE TABLE forgotten (
        queue INTEGER NOT NULL, at_ns INTEGER NOT NULL, touches TEXT NOT NULL
    )""",
    # Whoever removes a write, and dies or fails before it is overwritten, leaves a note of that.
    "CREATE TABLE remains (there INTEGER PRIMARY KEY)",
    """CREATE TRIGGER removed AFTER DELETE ON waiting BEGIN
        INSERT OR IGNORE INTO remains VALUES (1);
    END""",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)


class JournalFile:
    """The file of one journal. Thread-safe; processes share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reserve = path.with_name(f"{path.name}.reserve")
        self._writing, self._reading = SqliteLock(), SqliteLock()
        self._connections: list[sqlite3.Connection] = []  # the writer, the reader
        self._inode: tuple[int, int] | None = None
        self._turns: list[int] = []  # the descriptor of the file whose lock is the turn to write
        # Not at exit, when threads may still be inside SQLite: it would read freed memory.
        weakref.finalize(self, _let_go, self._connections, self._turns).atexit = False
        reset_after_fork(self)

    def forked(self) -> None:
        """Leave the parent's connections alone, and have some of its own when they are needed."""
        for each in self._connections:
            # A reference that is never given back: no destructor may close this connection.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
        self._connections.clear()
        _end_turns(self._turns)

    def open(self) -> None:
        """
        Create the file, readable by its owner only, if it is missing, and check that it is ours.

        Raises:
            ConfigurationError: Other users can read it, or it is no journal of this version.
            OSError: It cannot be created, opened or written.
        """
        create_private(self.path)
        objection = permission_problem(self.path)
        if objection:
            raise ConfigurationError(f"the journal {self.path} {objection}")
        with self.writing():
            pass
        self.lay_reserve()

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """
        Begin a transaction, which is on the disk when it ends.

        Raises:
            OSError: It could not be made, and nothing has changed.
        """
        with self._writing, _explained(self.path):
            connection = self._opened()[0]
            with self._turn():
                # A deferred one that has read and then writes is refused at once, whatever the
                # timeout, if another process has written in between.
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    # An interrupt, too: a transaction left open locks out every process.
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                    raise

    def erase(self) -> None:
        """
        Leave nothing of what was deleted beside the file either.

        Raises:
            OSError: Some of it is still there: somebody reads, or the disk fails.
        """
        with self._writing, _explained(self.path):
            connection = self._opened()[0]
            with self._turn():
                # Fetched to its end, since each step of it frees one page.
                connection.execute("PRAGMA incremental_vacuum").fetchall()
                deadline = time.monotonic() + BUSY_S
                # One that is blocked raises nothing, and says so in the first column.
                while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                    if time.monotonic() >= deadline:
                        raise JournalError(self.path, "SQLITE_BUSY")
                    time.sleep(_POLL_S)
                connection.execute("DELETE FROM remains")

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """
        Return the connection for reading, which waits for nobody.

        Raises:
            OSError: The file cannot be read.
        """
        while True:
            with self._reading, _explained(self.path):
                if self._connections:
                    yield self._connections[1]
                    return
            with self._writing, _explained(self.path):
                self._opened()

    def close(self) -> None:
        """Let go of the file."""
        with self._writing, self._reading:
            # Closing the last connection runs a checkpoint, beside which nobody may write.
            if self._turns:
                with suppress(OSError), self._turn():
                    _close(self._connections)
            _end_turns(self._turns)

    # -- opening -----------------------------------------------------------------------------------

    def _opened(self) -> list[sqlite3.Connection]:
        """Return the connections to what is at the path now."""
        if self._writing.is_torn:
            raise JournalError(self.path, TORN)
        found = self.path.stat()
        if self._connections and self._inode == (found.st_dev, found.st_ino):
            return self._connections
        with self._reading:  # closed while somebody reads, SQLite would read freed memory
            _close(self._connections)  # it was replaced
        if not self._turns:
            lock = self.path.with_name(f"{self.path.name}.lock")
            self._turns.append(os.open(lock, os.O_RDWR | os.O_CREAT, 0o600))
        with self._turn():
            writer = _connected(self.path)
            try:
                self._check(writer)
                self._connections += writer, _connected(self.path)
            except BaseException:
                writer.close()
                raise
        self._inode = found.st_dev, found.st_ino
        return self._connections

    def _check(self, connection: sqlite3.Connection) -> None:
        """Make the tables of an empty file; refuse somebody else's before it is changed."""
        try:
            version = tuple(number(connection, each) for each in ("application_id", "user_version"))
        except sqlite3.DatabaseError as exc:
            if getattr(exc, "sqlite_errorname", None) != "SQLITE_NOTADB":
                raise
            version = (-1, -1)
        is_empty = version == (0, 0) and number(connection, "schema_version") == 0
        if version != (_APPLICATION_ID, _VERSION) and not is_empty:
            raise ConfigurationError(
                f"{self.path} is no journal of this version: choose another file, and have the "
                "version that wrote it make what waits in it"
            )
        if is_empty:
            connection.execute(_SCHEMA[0])  # not possible in a transaction, nor later
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        found = {name for _, name, *_ in connection.execute("PRAGMA table_info(waiting)")}
        for name in (each for each in _ADDED if found and each not in found):
            connection.execute(f"ALTER TABLE waiting ADD COLUMN {name} {_ADDED[name]}")
        if found:
            connection.execute(_WAITING_BY_CAUSE)
        if is_empty:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA[1:]:
                connection.execute(statement)
            connection.execute("COMMIT")

    @contextmanager
    def _turn(self) -> Generator[None]:
        deadline = time.monotonic() + BUSY_S
        while True:
            try:
                fcntl.flock(self._turns[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise JournalError(self.path, "SQLITE_BUSY") from None
                time.sleep(_POLL_S)
        try:
            yield
        finally:
            fcntl.flock(self._turns[0], fcntl.LOCK_UN)

    # -- room --------------------------------------------------------------------------------

    def with_room(self, work: Callable[[], T], *, leaving_bytes: int = 0) -> T:
        """
        Return what *work* does; where the disk is full, in the room of the log or of the reserve.

        Args:
            work: May be done several times: what failed has changed nothing.
            leaving_bytes: How much of the reserve is not for it.

        Raises:
            OSError: There is no more of the reserve, or it is another failure.
        """
        try:
            return work()
        except OSError as exc:
            if not is_no_room(exc):
                raise
        self._restart_log()
        while True:
            try:
                return work()
            except OSError as exc:
                if not (is_no_room(exc) and self.give_up_reserve(leaving_bytes)):
                    raise
            self._restart_log()  # it has its room already, once what is in it is in the file

    def _restart_log(self) -> None:
        """Have the log written from its start again, which takes no room from the disk."""
        with suppress(OSError), self._writing, _explained(self.path):
            if self._connections:
                with self._turn():
                    self._connections[0].execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def lay_reserve(self) -> None:
        """Have some room on the disk that nobody else can take, if there is any."""
        with suppress(OSError):
            fd = os.open(self._reserve, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                if (size := os.fstat(fd).st_size) < RESERVE_BYTES:
                    allocate(fd, size, RESERVE_BYTES)
            finally:
                os.close(fd)

    def give_up_reserve(self, leaving_bytes: int = 0) -> bool:
        """Leave a piece of the reserve to the journal. False: there is no more than is left."""
        try:
            size = self._reserve.stat().st_size
            if size <= leaving_bytes:
                return False
            # In pieces, since another process on the disk may take what is free at once.
            left = max(size - _PIECE_BYTES, leaving_bytes)
            if left:
                os.truncate(self._reserve, left)
            else:
                self._reserve.unlink()
        except OSError:
            return False
        return True


class JournalError(OSError):
    """
    The journal cannot be read or written. Its message quotes nothing that is in it.

    Attributes:
        reason: SQLite's name of the error, `BLANK` or `TORN`.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"the journal {path} cannot be used ({reason})")
        self.path = path
        self.reason = reason


def is_no_room(exc: OSError) -> bool:
    """Tell whether *exc* is what a full disk, or a quota that is used up, may come to."""
    if isinstance(exc, JournalError):
        return exc.reason in _NO_ROOM
    return exc.errno in _NO_ROOM_ERRNOS


@contextmanager
def looking(path: Path) -> Generator[sqlite3.Connection]:
    """
    Return a connection that reads the journal at *path*, and changes nothing.

    Raises:
        OSError: It cannot be read, or is none.
    """
    with _explained(path), closing(_looker(path)) as connection:
        if number(connection, "application_id") != _APPLICATION_ID:
            raise JournalError(path, BLANK if _has_nothing(connection) else "SQLITE_NOTADB")
        connection.execute("BEGIN")
        yield connection


def is_blank(path: Path) -> bool:
    """
    Tell whether nobody has kept anything at *path* yet: there is no file, or one without tables.

    Raises:
        OSError: That cannot be told.
    """
    try:
        path.stat()
    except FileNotFoundError:
        return True
    with _explained(path), closing(_looker(path)) as connection:
        return _has_nothing(connection)


def _has_nothing(connection: sqlite3.Connection) -> bool:
    pragmas = "application_id", "user_version", "schema_version"
    return not any(number(connection, each) for each in pragmas)


@contextmanager
def _explained(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as exc:
        name = getattr(exc, "sqlite_errorname", None) or type(exc).__name__
        raise JournalError(path, name) from None


def _let_go(connections: list[sqlite3.Connection], turns: list[int]) -> None:
    _close(connections)
    _end_turns(turns)


def _end_turns(turns: list[int]) -> None:
    while turns:
        os.close(turns.pop())


def _close(connections: list[sqlite3.Connection]) -> None:
    for each in connections:
        each.close()
    connections.clear()


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)


def _looker(path: Path) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    return sqlite3.connect(address, uri=True, isolation_level=None)


def number(connection: sqlite3.Connection, pragma: str) -> int:
    """Return the number that a pragma tells."""
    row = connection.execute(f"PRAGMA {pragma}").fetchone()
    return int(row[0])
