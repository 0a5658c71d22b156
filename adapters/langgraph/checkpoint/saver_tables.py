"""
The tables of LangGraph's savers in SQLite and PostgreSQL, for what savers have no method for.

Their ids, their size without reading a state, and the removal of single states in one transaction.
A removal is a script of calls to a cursor, so that sync and async clients run the same one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from ....memory.guard.script import adrive, drive
from ....memory.subject_data.keeping import RecordCount
from ...toolkit.sync_async import run_in_client_loop
from ..files import connection_of, execute, is_aiosqlite, sizes
from .keep_set import StateKey

Work: TypeAlias = Callable[[], Any]
Script: TypeAlias = Generator[Work, Any, list[Any]]

_POSTGRES_SAVERS: Final = frozenset({"PostgresSaver", "AsyncPostgresSaver"})
_SIZES: Final = {
    "checkpoint": ("checkpoints", "length(checkpoint) + length(metadata)"),
    "write": ("writes", "length(value)"),
}
_THREADS: Final = "SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id"


class _Tables(NamedTuple):
    """
    The statements of one kind of saver.

    Attributes:
        begin: Before all others. Empty: the connection's own transaction is used.
        states: Returns the keys of the states of a thread.
        delete: Each removes rows of one state.
        sweep: Removes rows of a thread that no state refers to any more. Empty: there are none.
    """

    begin: str
    states: str
    delete: tuple[str, ...]
    sweep: str


_SQLITE: Final = _Tables(
    begin="BEGIN IMMEDIATE",
    states="SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = ?",
    delete=(
        "DELETE FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
        "DELETE FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
    ),
    sweep="",
)
_DELETE: Final = (
    "DELETE FROM {table} WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s"
)
_POSTGRES: Final = _Tables(
    begin="",
    # Locked: of two sweepers the second one sees what the first has left.
    states="SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = %s FOR UPDATE",
    delete=(
        _DELETE.format(table="checkpoint_writes"),
        _DELETE.format(table="checkpoints"),
    ),
    # A run that adds a state meanwhile refers to new values, or to those of the newest state.
    sweep=(
        "DELETE FROM checkpoint_blobs AS held WHERE thread_id = %s AND NOT EXISTS ("
        "SELECT FROM checkpoints AS state WHERE state.thread_id = held.thread_id "
        "AND state.checkpoint_ns = held.checkpoint_ns "
        "AND state.checkpoint -> 'channel_versions' ->> held.channel = held.version)"
    ),
)


class ChangedMeanwhileError(RuntimeError):
    """A thread got a state while others of it were to be removed: nothing was removed."""

    def __init__(self) -> None:
        super().__init__("a thread was written to meanwhile: nothing of it was removed")


def has_tables(client: Any) -> bool:
    """Return whether the tables of a saver are known, so that single states can be removed."""
    return _is_sqlite(client) or is_postgres(client)


def is_postgres(client: Any) -> bool:
    """Return whether *client* is a saver in PostgreSQL that keeps all states, and no pipeline."""
    is_known = any(
        base.__module__.startswith("langgraph.checkpoint.postgres")
        and base.__name__ in _POSTGRES_SAVERS
        for base in type(client).__mro__
    )
    return is_known and getattr(client, "pipe", None) is None


def _is_sqlite(client: Any) -> bool:
    connection = connection_of(client)
    return isinstance(connection, sqlite3.Connection) or is_aiosqlite(connection)


async def thread_ids(client: Any, most: int | None = None) -> list[Any] | None:
    """Return the ids of threads, at most so many. None: the tables are not known."""
    limit = "" if most is None else f" LIMIT {int(most)}"
    if _is_sqlite(client):
        return [thread for (thread,) in await execute(client, _THREADS + limit)]
    if not is_postgres(client):
        return None
    return [thread for (thread,) in await _in_postgres(client, partial(_read, _THREADS + limit))]


async def table_sizes(client: Any) -> list[RecordCount]:
    """Return rows and bytes of the tables, as far as the database tells them at once."""
    if is_postgres(client):
        found = await _in_postgres(client, _sizes_in_postgres)
        return [
            RecordCount(kind=kind, rows=int(rows), bytes=int(size), is_sampled=is_guessed)
            for kind, rows, size, is_guessed in found
        ]
    counts: list[RecordCount] = []
    for kind, (table, of_row) in _SIZES.items():
        of_table = await sizes(client, table, of_row)
        if of_table is not None:
            counts.append(RecordCount(kind=kind, **of_table._asdict()))
    return counts


_OF_TABLE: Final = (
    "SELECT reltuples, pg_total_relation_size(oid) FROM pg_class WHERE oid = to_regclass('{table}')"
)
_COUNT: Final = "SELECT count(*) FROM {table}"
_KINDS: Final = {
    "checkpoint": "checkpoints",
    "write": "checkpoint_writes",
    "blob": "checkpoint_blobs",
}


def _sizes_in_postgres(cursor: Any) -> Script:
    counts: list[Any] = []
    for kind, table in _KINDS.items():
        for guess, size in (yield from _read(_OF_TABLE.format(table=table), cursor)):
            # Counting reads a table whole. One that the server has not analysed yet is small.
            counted = guess < 0 and (yield from _read(_COUNT.format(table=table), cursor))
            rows = counted[0][0] if counted else guess
            counts.append((kind, rows, size, not counted))
    return counts


def prune(
    client: Any, thread: Any, going: Sequence[StateKey], before: Collection[StateKey]
) -> None:
    """
    Remove states of a thread from the tables of a sync saver, in one transaction.

    Args:
        client: The bare saver.
        thread: The id of the thread.
        going: The states to remove.
        before: All states that the thread had when they were chosen.

    Raises:
        ChangedMeanwhileError: It has others: nothing was removed.
    """
    if not isinstance(connection := connection_of(client), sqlite3.Connection):
        script = partial(_removed, tables=_POSTGRES, thread=thread, going=going, before=before)
        _call_postgres(client, script)
        return
    with client.lock:
        cursor = connection.cursor()
        cursor.row_factory = None  # rows as they are, whatever the connection makes of them
        removed = _removed(cursor, tables=_SQLITE, thread=thread, going=going, before=before)
        drive(_committed(connection, removed), _do)


async def aprune(
    client: Any, thread: Any, going: Sequence[StateKey], before: Collection[StateKey]
) -> None:
    """Remove states of a thread from the tables of an async saver, as `prune`. In its loop."""
    if not is_aiosqlite(connection := connection_of(client)):
        script = partial(_removed, tables=_POSTGRES, thread=thread, going=going, before=before)
        await _acall_postgres(client, script)
        return
    async with client.lock:
        cursor = await connection.cursor()
        removed = _removed(cursor, tables=_SQLITE, thread=thread, going=going, before=before)
        await adrive(_committed(connection, removed), _ado)


def _removed(
    cursor: Any,
    *,
    tables: _Tables,
    thread: Any,
    going: Sequence[StateKey],
    before: Collection[StateKey],
) -> Script:
    name = str(thread)
    if tables.begin:
        yield partial(cursor.execute, tables.begin)
    yield partial(cursor.execute, tables.states, (name,))
    rows = yield cursor.fetchall
    # Another sweeper may have removed some: that is no reason.
    if not {tuple(each) for each in rows} <= set(before):
        raise ChangedMeanwhileError
    for statement in tables.delete:
        yield partial(cursor.executemany, statement, [(name, *each) for each in going])
    if tables.sweep:
        yield partial(cursor.execute, tables.sweep, (name,))
    return []


def _read(statement: str, cursor: Any) -> Script:
    yield partial(cursor.execute, statement)
    rows: list[Any] = yield cursor.fetchall
    return rows


def _committed(connection: Any, script: Script) -> Script:
    """Yield the work of *script* in a transaction of a connection of SQLite."""
    yield connection.commit
    try:
        yield from script
    except BaseException:
        yield connection.rollback
        raise
    yield connection.commit
    return []


def _do(work: Work) -> Any:
    return work()


async def _ado(work: Work) -> Any:
    return await work()


async def _in_postgres(client: Any, script: Callable[[Any], Script]) -> list[Any]:
    if hasattr(client, "loop"):
        found: list[Any] = await run_in_client_loop(client, lambda: _acall_postgres(client, script))
        return found
    return _call_postgres(client, script)


def _call_postgres(client: Any, script: Callable[[Any], Script]) -> list[Any]:
    from psycopg.rows import tuple_row  # noqa: PLC0415 - an extra

    with (
        client.lock,
        _of_pool(client.conn) as connection,
        # Of its own, whether the connection commits by itself or not.
        connection.transaction(),
        connection.cursor(row_factory=tuple_row) as cursor,
    ):
        return drive(script(cursor), _do)


async def _acall_postgres(client: Any, script: Callable[[Any], Script]) -> list[Any]:
    from psycopg.rows import tuple_row  # noqa: PLC0415 - an extra

    async with (
        client.lock,
        _of_pool(client.conn) as connection,
        connection.transaction(),
        connection.cursor(row_factory=tuple_row) as cursor,
    ):
        return await adrive(script(cursor), _ado)


def _of_pool(connection: Any) -> Any:
    """Return the context manager of a pool's connection, or of the saver's only one."""
    # Its own context manager would close it.
    return connection.connection() if hasattr(connection, "connection") else nullcontext(connection)
