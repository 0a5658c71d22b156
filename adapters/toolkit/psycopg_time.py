"""
The waits of a pool of psycopg's connections, made no longer than a guarded call has left.

psycopg waits in steps, on the thread that calls. A statement that is late is cancelled, and what
surrounds it is undone. Where the server does not confirm that at once, the connection is closed and
the pool opens another one. In place of a single connection nobody opens another: whatever is late
on such a one needs a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any, cast
from weakref import ref

from psycopg import Connection, capabilities, generators, waiting
from psycopg.errors import QueryCanceled
from psycopg_pool import ConnectionPool, PoolTimeout

from ...memory.api import time_left_s
from ...memory.limits.time_left import here, sooner_s

UNDO_S = 0.03
"""Seconds past the deadline in which a statement is cancelled, and what is open around it ended."""

_LOOK_S = 0.01
"""Seconds from one look at the time to the next. psycopg's own are from one at signals."""

# psycopg_pool has no public place for any of it.
_shape_of = attrgetter("__class__", "connection_class", "_check")
_checked = ConnectionPool.check_connection


def ends_in_time(pool: Any) -> Callable[[], bool] | None:
    """
    Return what tells whether waits on *pool* end with their call, and have them do so.

    None: it is no `ConnectionPool` of psycopg's own connections, somebody else checks them, or
    libpq cannot cancel without waiting.
    """
    try:
        of, connection_class, check = _shape_of(pool)
    except AttributeError:
        return None
    if (of, connection_class) != _KINDS or not capabilities.has_cancel_safe():
        return None
    own = cast("dict[str, Any]", vars(pool))
    if check is _checked:
        own["_check"] = _check_in_time
    take = own.setdefault("getconn", partial(_getconn, ref(pool)))
    bounded = partial(_is_bounded, pool, take)
    return bounded if bounded() else None


def _is_bounded(pool: Any, take: Any) -> bool:
    # Looked at before each call: any of it may be replaced at any time.
    own = cast("dict[str, Any]", vars(pool))
    return (
        own.get("getconn") is take
        and getattr(take, "func", None) is _getconn
        and "connection" not in own
        and "putconn" not in own
        and pool.connection_class is Connection
        and pool._check in _CHECKS  # noqa: SLF001 - as above
    )


# The pool and its connections are referred to weakly: each of them warns as it goes unclosed.


def _getconn(of: ref[ConnectionPool], timeout: float | None = None) -> Connection[Any]:
    pool: Any = of()
    if time_left_s() is None:
        return ConnectionPool.getconn(pool, timeout)
    timeout_s = sooner_s(pool.timeout if timeout is None else timeout, PoolTimeout)
    return _bounded(ConnectionPool.getconn(pool, timeout_s))


def _check_in_time(connection: Connection[Any]) -> None:
    _checked(connection if time_left_s() is None else _bounded(connection))


_KINDS = ConnectionPool, Connection
_CHECKS: tuple[Any, ...] = None, _check_in_time


def _bounded(connection: Connection[Any]) -> Connection[Any]:
    vars(connection).setdefault("wait", partial(_wait, ref(connection)))
    return connection


def _wait(of: ref[Connection[Any]], gen: Any, *given: Any, **named: Any) -> Any:
    """Return what *gen* does on its connection, by the end of the call on this thread."""
    connection: Any = of()
    if here.limit is None:
        return Connection.wait(connection, gen, *given, **named)
    over_at, clock = here.limit
    # What a call that is over has open, as a transaction or a pipeline, is ended a moment later.
    ends_at = over_at if clock() < over_at else over_at + UNDO_S
    try:
        return Connection.wait(connection, _until(ends_at, clock, gen), _LOOK_S)
    except _Late:
        if not _is_cancelled(connection, gen, partial(_until, over_at + UNDO_S, clock)):
            connection.pgconn.finish()  # `close` would give it back to the pool
            with suppress(Exception):
                gen.close()  # that of a pipeline has something to send even then
        raise TimeoutError("PostgreSQL has not answered in time") from None


def _is_cancelled(connection: Any, gen: Any, in_time: Callable[[Any], Any]) -> bool:
    """Have the server end the statement of *gen*, and tell whether it has said so."""
    try:
        cancelling = connection.pgconn.cancel_conn()
        cancelling.start()
        waiting.wait_conn(in_time(generators.cancel(cancelling)), _LOOK_S)
        waiting.wait(in_time(gen), connection.pgconn.socket, _LOOK_S)
    except QueryCanceled:
        return True
    except Exception:  # noqa: BLE001 - it cannot be reached, or is as late as it was
        return False
    # The statement had ended. What was to cancel it may come while the next one runs.
    return False


class _Late(Exception):  # noqa: N818 - it never leaves this module
    """The time is over."""


def _until(
    ends_at: float, clock: Callable[[], float], gen: Generator[Any, Any, Any]
) -> Generator[Any, Any, Any]:
    """Do as *gen* does, as long as there is time, and leave it where it is then."""
    if clock() >= ends_at:
        raise _Late
    try:
        waits_for = next(gen)
        while True:
            waits_for = gen.send((yield waits_for))
            if clock() >= ends_at:
                raise _Late
    except StopIteration as end:
        return end.value
