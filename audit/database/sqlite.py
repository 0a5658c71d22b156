"""
The audit trail in an SQLite file: one writing connection per process, any number of readers.

SQLite before 3.51.3 can damage a database in WAL mode when one connection commits while another
runs a checkpoint. Writers here take turns by a lock file, checkpoint included, which rules that out
between them; readers never checkpoint. A connection is never used, nor closed, after a fork: that
would touch the parent's locks and its write-ahead log.
"""

from __future__ import annotations

import ctypes
import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...telemetry.files.permissions import create_private
from ...telemetry.network.probe import try_writing
from ...telemetry.process.fork_lock import SqliteLock
from . import sqlite_catalogue
from .database import Partition, Rows, Value, insert_statement
from .errors import AuditError, DatabaseMissingError, TamperedError, reason_of
from .schema import (
    APPLICATION_ID,
    check_version,
    columns_of,
    newest_version,
    required_of,
    statements_of,
    steps_from,
    tables,
    types_of,
    version_after,
)

_FETCHED = 500
BUSY_S = 5.0
"""Seconds a writer waits for another process before it gives up a batch."""

_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    # In WAL mode NORMAL does not sync a commit: what was acknowledged would be lost with the power.
    "PRAGMA synchronous = FULL",
    # A page that is freed keeps its bytes otherwise, and an erased customer's key with them.
    "PRAGMA secure_delete = ON",
    # Who can write the file could add a view or trigger that calls functions of this process.
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cache_size = -16384",
    # Seldom: a checkpoint syncs the whole file, and whoever commits waits for it.
    "PRAGMA wal_autocheckpoint = 4000",
)
_ADVICE = {
    "SQLITE_NOTADB": "is not an SQLite database; nothing in it was changed. Move it away",
    "SQLITE_CORRUPT": "is damaged; nothing in it was changed. Copy it, then run `sqlite3 .recover`",
    "SQLITE_READONLY": "is read-only. Let this user write to it and to its folder",
    "SQLITE_CANTOPEN": "cannot be opened. Check the path and its permissions",
    "SQLITE_PERM": "cannot be opened. Check its permissions",
    "SQLITE_BUSY": "was locked by another process for too long",
    "SQLITE_FULL": "cannot grow: the disk is full",
    "SQLITE_IOERR": "met an error of the disk",
    "SQLITE_ERROR": "is not as it should be: a table or column is missing. Restore it from a "
    "backup, or move it away",
}

logger = logging.getLogger("mnemoscope.audit")


class SqliteDatabase:
    """
    See `Database`.

    Args:
        path: The file. Made, readable for nobody else, when it is first written.
    """

    def __init__(self, path: Path) -> None:
        self.path: Path | None = path
        self.label = f"the audit database {path}"
        self._path = path
        self._inode: tuple[int, int] | None = None
        self._turn_fd: int | None = None
        self._connection: sqlite3.Connection | None = None
        self._inside = SqliteLock()

    @contextmanager
    def writing(self) -> Generator[_WriteConnection]:
        """See `Database.writing`."""
        with self._inside, self._explained():
            self._refuse_if_torn()
            self._leave_what_was_replaced()
            if self._connection is None:
                self._open()
            with self._turn():
                yield from self._transaction()

    def _refuse_if_torn(self) -> None:
        if self._inside.is_torn:
            raise AuditError(
                f"{self.label} was being written when this process was forked: it cannot write "
                "there, other processes can. Fork before the first call, or start it anew"
            )

    def _transaction(self) -> Generator[_WriteConnection]:
        connection = self._connection
        assert connection is not None  # noqa: S101 - opened above
        # Not deferred: having read the head it would be refused at once, whatever the timeout, if
        # another process had written in between.
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield _WriteConnection(connection, newest_version())
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    @contextmanager
    def reading(self) -> Generator[_ReadConnection]:
        """See `Database.reading`."""
        path = self._path
        if not path.exists():
            raise DatabaseMissingError(
                f"there is no audit database at {path}: nothing was recorded there yet, or "
                "MNEMOSCOPE_AUDIT_URL or --audit-url should name another place"
            )
        with self._explained():
            # A reader that may write would run a checkpoint when it closes, beside a writer's turn.
            address = f"file:{quote(str(path.absolute()))}?mode=ro"
            # The thread that closes a generator need not be the one that began it.
            # Without an isolation level, with which the module begins transactions of its own.
            connection = sqlite3.connect(
                address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            with closing(connection):
                # What is read from here on is of one moment, whatever is written meanwhile.
                connection.execute("BEGIN")
                version = _version_of(connection, self.label)
                if version == 0:
                    raise DatabaseMissingError(f"{self.label} is empty: nothing was recorded there")
                for each in sqlite_catalogue.wrong_tables(connection, tables(version)):
                    raise TamperedError(each)
                with _refused_where_changed():
                    yield _ReadConnection(connection, version)

    def exists(self) -> bool:
        """See `Database.exists`. Until its tables are there a new file is empty."""
        with suppress(DatabaseMissingError), self.reading():
            return True
        return False

    def check_writable(self) -> None:
        """See `Database.check_writable`: of the file and of those beside it."""
        with self._explained():
            try_writing(self._path)
            try_writing(self._path.with_name(f"{self._path.name}-wal"))

    def scrub(self) -> None:
        """See `Database.scrub`: the write-ahead log still has the pages as they were."""
        if not self._path.exists():
            return
        with self._inside, self._explained():
            self._refuse_if_torn()
            if self._connection is None:
                self._open()
            with self._turn():
                self._truncate_log()

    def _truncate_log(self) -> None:
        assert self._connection is not None  # noqa: S101 - opened above
        deadline = time.monotonic() + BUSY_S
        # One that is blocked raises nothing, and says so in the first column.
        while self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() >= deadline:
                raise AuditError(
                    f"{self.label} is being read: what was deleted is still in its write-ahead "
                    "log. Try again when nobody reads"
                )
            time.sleep(0.01)

    def partition(self) -> None:
        """See `Database.partition`."""
        raise AuditError(f"{self.label} is a file, and has no partitions: PostgreSQL has")

    def close(self) -> None:
        """Close the database. Another process's turn is waited for, since closing checkpoints."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # Closed either way: without its turn the log stays for the next who opens the file.
            with suppress(AuditError), self._turn():
                connection.close()
            connection.close()
        self._let_go_of_turns()

    def abandon(self) -> None:
        """See `Database.abandon`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # A reference that is never given back: no destructor may close this connection.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self._let_go_of_turns()

    # -- opening -----------------------------------------------------------------------------------

    def _open(self) -> None:
        create_private(self._path)
        lock_path = self._path.with_name(self._path.name + "-lock")
        self._turn_fd = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            with self._turn():
                connection = self._connection = sqlite3.connect(
                    self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
                )
                _version_of(connection, self.label)
                for pragma in _PRAGMAS:
                    connection.execute(pragma)
                _migrate(connection, self.label)
                self._inode = _inode(self._path)
        except BaseException:
            self.close()
            raise

    def _leave_what_was_replaced(self) -> None:
        # SQLite goes on writing to a file that was unlinked, and says nothing of it.
        if self._connection is None or _inode(self._path) == self._inode:
            return
        logger.error(
            "%s was deleted or replaced while in use: what it held is no longer there, and "
            "recording goes on with what is there now",
            self.label,
        )
        self.close()

    # -- turns -------------------------------------------------------------------------------------

    @contextmanager
    def _turn(self) -> Generator[None]:
        fd = self._turn_fd
        if fd is None:
            raise AuditError(f"{self.label} was closed")
        _take_turn(fd, self.label)
        try:
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)

    def _let_go_of_turns(self) -> None:
        fd, self._turn_fd = self._turn_fd, None
        if fd is not None:
            os.close(fd)

    @contextmanager
    def _explained(self) -> Generator[None]:
        """Turn errors of SQLite and of the file system into an `AuditError`."""
        try:
            yield
        except sqlite3.Error as exc:
            name = getattr(exc, "sqlite_errorname", None) or type(exc).__name__
            primary = "_".join(name.split("_")[:2])  # SQLITE_READONLY_DBMOVED -> SQLITE_READONLY
            advice = _ADVICE.get(primary, f"failed ({name})")
            raise AuditError(f"{self.label} {advice}") from exc
        except OSError as exc:
            raise AuditError(f"{self.label} cannot be used: {reason_of(exc)}") from exc


@contextmanager
def _refused_where_changed() -> Generator[None]:
    """Turn the error of a query that its tables do not fit any more into a `TamperedError`."""
    try:
        yield
    except sqlite3.OperationalError as exc:
        if getattr(exc, "sqlite_errorname", "") != "SQLITE_ERROR":
            raise
        raise TamperedError("a column is missing, or is something else") from exc


class _ReadConnection:
    def __init__(self, connection: sqlite3.Connection, version: int) -> None:
        self._connection = connection
        self.version = version

    def execute(self, statement: str, values: Sequence[Value] = (), /) -> Rows:
        return _Rows(self._connection, statement, values)

    def stream(self, statement: str, values: Sequence[Value] = (), /) -> Iterator[Any]:
        rows = _Rows(self._connection, statement, values)
        while some := rows.fetch(_FETCHED):
            yield from some

    def evidence(self, name: str, /) -> str:
        verdict = "json_extract(CAST(header AS TEXT), '$.verdict.evidence')"
        return f"json_extract({verdict}, '$.{name}')"

    def wrong_definitions(self) -> list[str]:
        return sqlite_catalogue.wrong_definitions(self._connection, definitions(self.version))

    def wrong_values(self) -> list[str]:
        kinds = {
            table: dict(zip(columns_of(table, self.version), types, strict=True))
            for table in tables(self.version)
            if (types := types_of(table, None, str.lower, self.version))
        }
        required = {table: required_of(table, self.version) for table in kinds}
        return sqlite_catalogue.wrong_values(self, kinds, required)

    def wrong_indexes(self, tables: Sequence[str] | None = None, /) -> list[str]:
        return sqlite_catalogue.wrong_indexes(self._connection, tables)

    def is_replica(self) -> bool:
        return False

    def partitions(self) -> Sequence[Partition]:
        return ()  # a file gives no space back sooner


class _Rows:
    """
    The rows of a statement, whatever bytes are in them.

    Text that is no UTF-8 costs the reading of the statement once more: to look at each text for
    it, as they come, would cost more than all else that is done with a row.
    """

    def __init__(
        self, connection: sqlite3.Connection, statement: str, values: Sequence[Value]
    ) -> None:
        self._connection = connection
        self._asked = statement, values
        self._cursor = connection.execute(statement, values)
        self._given = 0
        self.rowcount = self._cursor.rowcount

    def __iter__(self) -> Iterator[Any]:
        while some := self.fetch(_FETCHED):
            yield from some

    def fetchone(self) -> Any:
        return next(iter(self.fetch(1)), None)

    def fetchall(self) -> list[Any]:
        return list(self)

    def fetch(self, most: int) -> list[Any]:
        """Return so many of the rows that are left."""
        try:
            some = self._cursor.fetchmany(most)
        except sqlite3.OperationalError:
            # Already read as any bytes, so it is another error.
            if self._connection.text_factory is not str:
                raise
            self._connection.text_factory = _any_text
            self._cursor = self._connection.execute(*self._asked)
            for _ in range(self._given):
                self._cursor.fetchone()
            some = self._cursor.fetchmany(most)
        self._given += len(some)
        return some


def _any_text(data: bytes) -> str:
    """Return text, with bytes in it that are none as they cannot stand in any other text."""
    return data.decode("utf-8", "surrogateescape")


class _WriteConnection(_ReadConnection):
    queue = ""

    def __init__(self, connection: sqlite3.Connection, version: int) -> None:
        super().__init__(connection, version)
        connection.text_factory = _any_text

    def execute(self, statement: str, values: Sequence[Value] = (), /) -> Rows:
        return self._connection.execute(statement, values)

    def found(self) -> None:
        return  # no other transaction writes

    def make_room(self, _size: int, _now_us: int, /) -> None:
        return

    def drop_partitions(self, _names: Sequence[str], /) -> None:
        raise NotImplementedError

    def clock_us(self) -> int | None:
        return None  # it has the process's

    def send(self, statement: str, values: Sequence[Value] = (), /) -> None:
        self._connection.execute(statement, values)

    def insert(
        self, table: str, columns: tuple[str, ...], rows: Sequence[tuple[Value, ...]], /
    ) -> None:
        if rows:
            self._connection.executemany(insert_statement(table, columns), rows)


def _take_turn(fd: int, label: str) -> None:
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            # Not blocking: flock has no timeout, and a signal that ends the wait is for the main
            # thread only.
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                # Not SQLite's own words: which of the two locks it was is to be seen in a log.
                raise AuditError(
                    f"{label} was locked by another process, which has the turn to write, for "
                    f"more than {BUSY_S:g} s"
                ) from None
            time.sleep(0.001)
        else:
            return


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


# -- schema --------------------------------------------------------------------------------------


def _version_of(connection: sqlite3.Connection, label: str) -> int:
    """Return the version of a database, 0 for an empty one, or raise. Changes nothing."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application_id != APPLICATION_ID and (tables or version):
        raise AuditError(
            f"{label} belongs to another application; nothing in it was changed. "
            "Choose another file with MNEMOSCOPE_AUDIT_URL"
        )
    check_version(version, label)
    return int(version)


def _migrate(connection: sqlite3.Connection, label: str) -> None:
    """Bring a database to the newest version, each step in a transaction of its own."""
    while _version_of(connection, label) < newest_version():
        connection.execute("BEGIN EXCLUSIVE")
        try:
            # Read again: another process may have been faster.
            version = _version_of(connection, label)
            if version < newest_version():
                _step(connection, version)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _step(connection: sqlite3.Connection, version: int) -> None:
    for statement in steps_from(version)[0]:
        connection.execute(statement)
    for statement in _TRIGGERS if version == 0 else ():
        connection.execute(statement)
    after = version_after(version)
    connection.execute("UPDATE audit_log SET schema_version = ?", (after,))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {after}")


def _sealed(table: str, same_row: str, given_up: str) -> tuple[str, ...]:
    refusal = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    # INSERT OR REPLACE deletes without firing a delete trigger, so it is met before it begins.
    exists = f"EXISTS(SELECT 1 FROM {table} WHERE {same_row})"  # noqa: S608 - literals of this module
    on = f"ON {table}"
    return (
        f"CREATE TRIGGER {table}_no_update BEFORE UPDATE {on} {refusal}",
        f"CREATE TRIGGER {table}_no_delete BEFORE DELETE {on} WHEN {given_up} {refusal}",
        f"CREATE TRIGGER {table}_no_replace BEFORE INSERT {on} WHEN {exists} {refusal}",
    )


_TRIGGERS = (
    *_sealed(
        "audit_event",
        # Where writer and number are those of another row, the index refuses or, asked to
        # replace, would: so they are looked at too.
        "seq = NEW.seq OR (kind = 'operation' AND NEW.kind = 'operation' "
        "AND writer_id = NEW.writer_id AND writer_seq = NEW.writer_seq)",
        "OLD.seq >= (SELECT first_seq FROM audit_log)",
    ),
    *_sealed("audit_checkpoint", "size = NEW.size AND created_us = NEW.created_us", "1"),
)


def definitions(version: int) -> list[str]:
    """Return the statements that make a database of *version*."""
    return [*statements_of(version), *_TRIGGERS]
