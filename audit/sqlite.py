"""
The audit trail's own way with SQLite: one writing connection per process, any number of readers.

SQLite before 3.51.3 can damage a database in WAL mode when one connection commits while another
runs a checkpoint. Writers here take turns by a lock file, checkpoint included, which rules that out
between them; readers never checkpoint. A connection is never used, nor closed, after a fork: that
would touch the parent's locks and its write-ahead log.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from ..telemetry.reach import may_write
from .errors import AuditError, explained
from .rows import EVENT_COLUMNS, USAGE_COLUMNS, Encoded, Value, storable
from .schema import migrate, version_of

BUSY_S = 5.0
"""Seconds a writer waits for another process before it gives up a batch."""

_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",
)


def _insert(table: str, columns: tuple[str, ...]) -> str:
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table}({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - literals


_INSERT_EVENT = _insert("audit_event", EVENT_COLUMNS)
_INSERT_MEMORY = _insert("audit_memory", ("seq", "rank", "memory_id", "score"))
_INSERT_USAGE = _insert("audit_usage", ("seq", *USAGE_COLUMNS))
_INSERT_KEY = _insert("audit_key", ("key_id", "first_used_us"))


class SqliteWriter:
    """
    The writing end of an audit database, created if it is not there. Not thread-safe.

    Args:
        path: The database. Readable for nobody else.
        key_id: Name of the key behind the subjects' aliases, noted in the database.
        clock_ns: Wall clock.

    Raises:
        AuditError: The file cannot be used. It is unchanged then.
    """

    def __init__(self, path: Path, key_id: str, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._path = path
        self._turn_fd: int | None = None
        self._connection: sqlite3.Connection | None = None
        with explained(path):
            try:
                self._open(key_id, clock_ns() // 1_000)
            except BaseException:
                self.close()
                raise

    def _open(self, key_id: str, now_us: int) -> None:
        _create(self._path)
        lock_path = self._path.with_name(self._path.name + "-lock")
        self._turn_fd = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        with self._turn():
            connection = self._connection = _connect(self._path)
            version_of(connection, self._path)
            for pragma in _PRAGMAS:
                connection.execute(pragma)
            migrate(connection, self._path)
            connection.execute(_INSERT_KEY, (key_id, now_us))
            self._inode = _inode(self._path)

    def is_current(self) -> bool:
        """Return whether the file at the path is still the one that was opened."""
        return _inode(self._path) == self._inode

    def append(self, rows: Iterable[Encoded]) -> int:
        """
        Commit *rows* in one transaction, durably. Those already stored are left as they are.

        Returns:
            How many were new.

        Raises:
            AuditError: None of them was stored.
        """
        with explained(self._path), self._turn():
            connection = self._live_connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                added = _add(connection, rows)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            return added

    def _live_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise AuditError(f"the audit database {self._path} was closed")
        return self._connection

    @contextmanager
    def _turn(self) -> Generator[None]:
        fd = self._turn_fd
        if fd is None:
            raise AuditError(f"the audit database {self._path} was closed")
        _take_turn(fd, self._path)
        try:
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the database. Another process's turn is waited for, since closing checkpoints."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(AuditError), self._turn():
                connection.close()
            connection.close()
        fd, self._turn_fd = self._turn_fd, None
        if fd is not None:
            os.close(fd)

    def abandon(self) -> None:
        """Let go in a forked child without touching the parent's database."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # A reference that is never given back: no destructor may close this connection.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        fd, self._turn_fd = self._turn_fd, None
        if fd is not None:
            os.close(fd)


def _add(connection: sqlite3.Connection, rows: Iterable[Encoded]) -> int:
    added = 0
    memories: list[tuple[Value, ...]] = []
    usages: list[tuple[Value, ...]] = []
    for row in rows:
        cursor = _insert_one(connection, row.event)
        if cursor.rowcount < 1:
            continue  # recorded before
        seq = cursor.lastrowid
        memories.extend((seq, *memory) for memory in row.memories)
        if row.usage is not None:
            usages.append((seq, *row.usage))
        added += 1
    _insert_all(connection, _INSERT_MEMORY, memories)
    _insert_all(connection, _INSERT_USAGE, usages)
    return added


_ODD_VALUE = (UnicodeEncodeError, OverflowError, sqlite3.ProgrammingError)


def _insert_one(connection: sqlite3.Connection, values: tuple[Value, ...]) -> sqlite3.Cursor:
    try:
        return connection.execute(_INSERT_EVENT, values)
    except _ODD_VALUE:
        return connection.execute(_INSERT_EVENT, storable(values))


def _insert_all(
    connection: sqlite3.Connection, statement: str, rows: list[tuple[Value, ...]]
) -> None:
    try:
        connection.executemany(statement, rows)
    except _ODD_VALUE:
        # From the start: a trigger ignores those that were inserted before the odd one.
        connection.executemany(statement, [storable(row) for row in rows])


def _take_turn(fd: int, path: Path) -> None:
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise AuditError(
                    f"the audit database {path} was locked by another process for too long"
                ) from None
            time.sleep(0.001)
        else:
            return


def _create(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        # Only a file that is new is opened here: closing a descriptor of a live database would
        # drop this process's locks on it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def writable(path: Path) -> None:
    """
    Find out by their permissions whether *path* and the files beside it could be written.

    Raises:
        AuditError: They could not.
    """
    with explained(path):
        may_write(path)
        may_write(path.with_name(f"{path.name}-wal"))


@contextmanager
def reading(path: Path) -> Generator[sqlite3.Connection]:
    """
    Open *path* for one reader that sees one moment of it and cannot change it.

    Raises:
        AuditError: There is no such database, or it cannot be read.
    """
    if not path.exists():
        raise AuditError(f"there is no audit database at {path}")
    with explained(path):
        address = f"file:{quote(str(path.absolute()))}?mode=ro"
        connection = sqlite3.connect(address, uri=True, timeout=BUSY_S, isolation_level=None)
        with closing(connection):
            connection.execute("BEGIN")
            if version_of(connection, path) == 0:
                raise AuditError(f"the audit database {path} is empty")
            yield connection
