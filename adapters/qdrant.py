"""
Qdrant: ``QdrantClient`` and ``AsyncQdrantClient`` behind a guard.

What goes through the client's own methods is guarded; its ``http``, ``grpc_points`` and
``grpc_collections`` are the server's raw interface and are not.

A local client (``:memory:`` or ``path=``) is not thread-safe, so calls to it take turns. The async
one is synchronous code, which would block its event loop while it answers: it is run on threads.
"""

from __future__ import annotations

import sqlite3
import threading
import weakref
from contextvars import ContextVar
from functools import lru_cache
from types import TracebackType
from typing import Any, TypeAlias, TypeVar, cast

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
import httpx
from pydantic import ValidationError
from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal
from qdrant_client.local.qdrant_local import QdrantLocal

from ..memory.errors import UnsupportedClientError
from ..memory.guard import Guard
from ..memory.runtime import Runtime
from .proxy import bare, guard_of, guarded_class, inner_of, wrap
from .qdrant_headers import guard_class
from .qdrant_holding import QdrantHolding
from .qdrant_journal import writes
from .qdrant_methods import table

T = TypeVar("T")
Local: TypeAlias = QdrantLocal | AsyncQdrantLocal

WANTED = (QdrantClient, AsyncQdrantClient)


def guarded(client: T, runtime: Runtime, *, owner_key: str | None = None) -> T:
    """
    Guard a ``QdrantClient`` or ``AsyncQdrantClient``.

    Args:
        client: The client. Stays usable, unguarded, as it is.
        runtime: What the guards of a scope share.
        owner_key: Payload key, dotted where it is nested, that holds the id of a point's owner: a
            key of the store, so it is kept verbatim. Tells whom a call is for and whose a result
            is; needed for ``tenancy="enforce"`` to have an effect here.

    Returns:
        An instance of the client's class. If *runtime* guards it already: the same object, or, with
        another *owner_key*, one that shares its guard.

    Raises:
        UnsupportedClientError: It is neither.
    """
    if not isinstance(client, WANTED):
        raise UnsupportedClientError(type(client), tuple(each.__name__ for each in WANTED))
    client = bare(client, runtime)
    guard, inner, local = guard_of(client), inner_of(client), _local(client)
    inline = local is not None and _is_bound(local)
    if guard is None or inner is None or guard.runtime is not runtime:
        turns = None if local is None else _turns_of(local)
        # A write can be made again on another thread only.
        kept = None if inline else writes(client, table(owner_key, inline=inline))
        guard = guard_class(client)(
            "qdrant",
            runtime,
            failed=store_failed,
            serialise=turns,
            blocks=isinstance(local, AsyncQdrantLocal) and not inline and inner_of(client) is None,
            writes=kept,
        )
        inner = client
        runtime.holdings.add(QdrantHolding(client, turns=turns), guard)
    elif owner_key is None:
        return client
    if owner_key is not None:
        _is_held(runtime, guard, owner_key)
    kind = _class_for(cast("Any", type(inner)), owner_key, inline=inline)
    return client if type(client) is kind else cast("T", wrap(inner, guard, kind))


def _is_held(runtime: Runtime, guard: Guard, owner_key: str) -> None:
    holding = runtime.holdings.of(guard)
    if isinstance(holding, QdrantHolding):
        holding.owner_keys.add(owner_key)


@lru_cache(maxsize=32)
def _class_for(base: type[Any], owner_key: str | None, *, inline: bool) -> type[Any]:
    return guarded_class(base, table(owner_key, inline=inline))


# -- failures --------------------------------------------------------------------------------------

_FAILED_CODES = frozenset(
    {
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DATA_LOSS,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.UNKNOWN,
    }
)
_MALFORMED = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
_TIMEOUT, _TOO_MANY, _BAD_REQUEST, _SERVER_ERROR = 408, 429, 400, 500


def store_failed(exc: BaseException) -> bool:
    """Tell a failure of Qdrant from a caller's mistake."""
    if isinstance(exc, UnexpectedResponse):
        return _failed_status(exc.status_code)
    if isinstance(exc, ResponseHandlingException):
        return _failed_source(exc.source)
    if isinstance(exc, grpc.RpcError):
        code = getattr(exc, "code", None)
        return code is None or code() in _FAILED_CODES
    if isinstance(exc, RuntimeError):
        return _is_closed(exc)
    return isinstance(exc, (QdrantException, sqlite3.Error, OSError))


def _failed_status(status: int | None) -> bool:
    # Below 400 it is a redirect or a captive portal: somebody answered, but not the store.
    if status is None or status < _BAD_REQUEST or status >= _SERVER_ERROR:
        return True
    return status in {_TIMEOUT, _TOO_MANY}


def _failed_source(source: BaseException) -> bool:
    """Tell by what the client wrapped; it wraps its own failing to build a request, too."""
    if isinstance(source, httpx.HTTPError):
        return not isinstance(source, _MALFORMED)
    if isinstance(source, RuntimeError):
        return _is_closed(source)
    return isinstance(source, (ValidationError, OSError))


def _is_closed(exc: RuntimeError) -> bool:
    # Local mode, httpx and the gRPC channel pool have no type for it, only words.
    return "closed" in str(exc) or "grpc connection" in str(exc)


# -- local mode ------------------------------------------------------------------------------------


_SERIALISED = 3
"""`sqlite3.threadsafety` where connections may go from thread to thread."""

_inside: ContextVar[tuple[object, ...]] = ContextVar("mnemoscope_qdrant_turns", default=())


class Turns:
    """
    One call at a time into a client that is not thread-safe.

    A call made from inside another (by the iterator that an upload pulls, say) takes part in its
    turn, on whichever thread its deadline is kept: a re-entrant lock would wait for itself there.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turn: object | None = None

    def __enter__(self) -> None:
        inside = _inside.get()
        if self._turn not in inside:
            self._lock.acquire()
            self._turn = object()
        _inside.set((*inside, self._turn))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        outside = _inside.get()[:-1]
        _inside.set(outside)
        if self._turn not in outside:
            self._turn = None
            self._lock.release()


_turns: weakref.WeakKeyDictionary[Any, Turns] = weakref.WeakKeyDictionary()
_turns_lock = threading.Lock()


def _turns_of(local: Local) -> Turns:
    """Return what all guards of a local client share."""
    with _turns_lock:
        return _turns.setdefault(local, Turns())


def _local(client: QdrantClient | AsyncQdrantClient) -> Local | None:
    found = getattr(client, "_client", None)
    return found if isinstance(found, (QdrantLocal, AsyncQdrantLocal)) else None


def _is_bound(local: Local) -> bool:
    """Tell whether SQLite, as it was compiled here, refuses other threads than the one it knows."""
    shared = local.force_disable_check_same_thread or sqlite3.threadsafety == _SERIALISED
    return local.persistent and not shared
