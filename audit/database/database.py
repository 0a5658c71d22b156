"""
The protocols of a database for the audit trail. SQL is written once, with ``?`` for values.

`sqlite` is the default, `postgres` is for many machines. Each turns its errors into `AuditError`,
and gives two kinds of connection: one that writes, whose transaction is durable when it ends, and
any number that read, each of which sees one moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import orjson

_AT_ONCE = 500
Value = str | int | float | bytes | None
"""A value of a column."""


class Partition(NamedTuple):
    """
    The part of a table that has the events ``[first, stop)``, as the catalogue has it.

    Attributes:
        is_sound: Whether its name, schema and bounds are such as are made here.
        is_own: Whether this role may add and drop partitions.
    """

    table: str
    first: int
    stop: int
    name: str
    is_sound: bool
    is_own: bool


class Rows(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """Number of rows changed by the statement."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, a tuple, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Asked(Protocol):
    """Whatever runs a statement: a connection, or a moment of a log."""

    def execute(self, statement: str, values: Sequence[Value] = (), /) -> Rows:
        """Run *statement*, with ``?`` for each of *values*."""
        ...


class ReadConnection(Asked, Protocol):
    """
    A connection that sees one moment of the database and cannot change it.

    Attributes:
        version: Of the tables.
    """

    version: int

    def stream(self, statement: str, values: Sequence[Value] = (), /) -> Iterator[Any]:
        """Run *statement* and yield its rows, however many, in bounded memory."""
        ...

    def evidence(self, name: str, /) -> str:
        """Return the SQL of a figure that the verdict in ``header`` has: text or a number."""
        ...

    def wrong_definitions(self) -> list[str]:
        """Return in what the database is defined otherwise than this version does it."""
        ...

    def wrong_values(self) -> list[str]:
        """Return where a value stands that is of another type than its column, some of them."""
        ...

    def wrong_indexes(self, tables: Sequence[str] | None = None, /) -> list[str]:
        """Return the indexes of *tables*, or of all, that do not hold what their tables hold."""
        ...

    def is_replica(self) -> bool:
        """Return whether it is read from a copy that comes after the log."""
        ...

    def partitions(self) -> Sequence[Partition]:
        """Return the partitions of the tables that grow, in order; none, where they are plain."""
        ...


class WriteConnection(ReadConnection, Protocol):
    """
    A connection inside a transaction that writes.

    Attributes:
        queue: Behind a SELECT, makes it wait until no other transaction has the row.
    """

    queue: str

    def found(self) -> None:
        """Wait until no other transaction is about to insert the row that writers queue for."""
        ...

    def make_room(self, size: int, now_us: int, /) -> None:
        """See that *size* events have room, and the next ones: whoever holds the end does it."""
        ...

    def drop_partitions(self, names: Sequence[str], /) -> None:
        """Drop partitions, if no reader holds them."""
        ...

    def clock_us(self) -> int | None:
        """Return the time by the database's own clock, µs since 1970 UTC. None: it has none."""
        ...

    def send(self, statement: str, values: Sequence[Value] = (), /) -> None:
        """Run *statement* and do not wait for it: what follows, or the end, fails if it does."""
        ...

    def insert(
        self, table: str, columns: tuple[str, ...], rows: Sequence[tuple[Value, ...]], /
    ) -> None:
        """Add *rows* to *table*, as `send` does."""
        ...


class AuditDatabase(Protocol):
    """
    One audit database. Opens nothing until it is used; not thread-safe but for `reading`.

    Attributes:
        label: What errors call it: a path, or host and name. Never a password.
        path: Its file, where it is one.
    """

    label: str
    path: Path | None

    def writing(self) -> AbstractContextManager[WriteConnection]:
        """
        Return a transaction that begins when no other writes, and is on the disk when it ends.

        Raises:
            AuditError: Nothing of it was stored, as far as can be known.
        """
        ...

    def reading(self) -> AbstractContextManager[ReadConnection]:
        """
        Return a connection of its own that sees one moment.

        Raises:
            AuditError: There is no such database, or it cannot be read.
        """
        ...

    def exists(self) -> bool:
        """Return whether there is anything to read."""
        ...

    def check_writable(self) -> None:
        """
        Find out whether it could be written, changing nothing.

        Raises:
            AuditError: It could not.
        """
        ...

    def scrub(self) -> None:
        """
        Rid the files of what was deleted.

        Raises:
            AuditError: It is still in them.
        """
        ...

    def partition(self) -> None:
        """
        Partition the tables that grow, where they are not, while others read and write.

        Raises:
            AuditError: They are not partitioned, and can be used as before.
        """
        ...

    def close(self) -> None:
        """Close the connection that writes. The next use opens another."""
        ...

    def abandon(self) -> None:
        """Drop the connection in a forked child, without touching the parent's."""
        ...


def blob(value: Any) -> bytes:
    """
    Return the bytes that stand in a column.

    Raises:
        TypeError: Something else does: of a number, ``bytes`` would make as many zeros.
    """
    if isinstance(value, bytes):
        return value
    if isinstance(value, memoryview):
        return value.tobytes()
    raise TypeError("what should be bytes is something else")


def marks(count: int) -> str:
    """Return so many marks for values, for an ``IN (…)``."""
    return ", ".join("?" * count)


def among(connection: Asked, statement: str, values: Sequence[Any], *more: Value) -> Iterator[Any]:
    """Yield the rows of *statement* for all *values*, of its ``IN ({})``; *more* follow them."""
    # SQLite takes 32,766 values in a statement, 999 in builds before 3.32.
    for start in range(0, len(values), _AT_ONCE):
        part = values[start : start + _AT_ONCE]
        yield from connection.execute(statement.format(marks(len(part))), (*part, *more)).fetchall()


def log_events(
    connection: ReadConnection, *names: str, since_seq: int = 0
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and header of the events about the log itself that have one of *names*."""
    statement = (
        "SELECT seq, header FROM audit_event WHERE kind = 'log' AND seq >= ? "  # noqa: S608 - marks
        f"AND operation IN ({marks(len(names))}) ORDER BY seq"
    )
    for seq, header in connection.stream(statement, (since_seq, *names)):
        yield seq, orjson.loads(blob(header))


def latest_log_event(connection: ReadConnection, name: str) -> dict[str, Any] | None:
    """Return the header of the latest event of that *name*. None: there is none."""
    found: Any = connection.execute(_LATEST, (name,)).fetchone()
    return None if found is None else orjson.loads(blob(found[0]))


_LATEST = """
    SELECT header FROM audit_event WHERE kind = 'log' AND operation = ? ORDER BY seq DESC LIMIT 1
"""


@lru_cache(64)
def insert_statement(table: str, columns: tuple[str, ...]) -> str:
    """Return an INSERT of one row."""
    return f"INSERT INTO {table}({', '.join(columns)}) VALUES ({marks(len(columns))})"  # noqa: S608 - literals of this package
