"""
Turns at a local Qdrant (``:memory:`` or ``path=``), which is not thread-safe.

All guards of one local store share its lock, and so does mem0 where the store is inside it.
"""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any, TypeAlias, cast

from qdrant_client import QdrantClient
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal
from qdrant_client.local.qdrant_local import QdrantLocal

from ...memory.api import time_left_s
from ...telemetry.process.fork import reset_after_fork
from ..toolkit.proxy import INNER, inner_of

Local: TypeAlias = QdrantLocal | AsyncQdrantLocal

_SERIALISED = 3
"""`sqlite3.threadsafety` where connections may go from thread to thread."""


class _Turn:
    """One turn, with the lock that it holds."""

    __slots__ = ("lock",)

    def __init__(self, lock: threading.Lock) -> None:
        self.lock = lock


_inside: ContextVar[tuple[_Turn, ...]] = ContextVar("mnemoscope_qdrant_lock", default=())


class CallLock:
    """
    Lock around the calls of a client that is not thread-safe.

    A call made from inside another (by the iterator that an upload pulls, say) shares the lock, on
    whichever thread its deadline is kept: a re-entrant lock would wait for itself there.
    """

    def __init__(self) -> None:
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin anew in a forked child: the thread that had the turn may not exist there."""
        self._lock = threading.Lock()
        self._turn: _Turn | None = None

    def __enter__(self) -> None:
        left_s = time_left_s()
        if not self._enter(-1.0 if left_s is None else left_s):
            raise TimeoutError("another call has the turn")

    def enter_now(self) -> bool:
        """Enter if that means no wait. False: another call has the turn."""
        return self._enter(0.0)

    def _enter(self, timeout_s: float) -> bool:
        inside, turn = _inside.get(), self._turn
        if turn is None or turn not in inside:
            turn = _Turn(self._lock)
            if not turn.lock.acquire(timeout=timeout_s):
                return False
            self._turn = turn
        _inside.set((*inside, turn))
        return True

    def __exit__(self, *_exc: object) -> None:
        *outside, turn = _inside.get()
        _inside.set(tuple(outside))
        if turn in outside:
            return
        if self._turn is turn:  # not one that a forked child has from its parent
            self._turn = None
        turn.lock.release()


_locks: weakref.WeakKeyDictionary[Any, CallLock] = weakref.WeakKeyDictionary()
_locks_guard = threading.Lock()


def lock_of(local: Local) -> CallLock:
    """Return the lock that all guards of a local store share."""
    with _locks_guard:
        return _locks.setdefault(local, CallLock())


def local_of(client: Any) -> Local | None:
    """Return the local store inside *client*. None: it is a server's client, or of another kind."""
    found = getattr(client, "_client", None)
    return found if isinstance(found, (QdrantLocal, AsyncQdrantLocal)) else None


def is_bound(local: Local) -> bool:
    """Tell whether SQLite, as it was compiled here, refuses other threads than the one it knows."""
    shared = local.force_disable_check_same_thread or sqlite3.threadsafety == _SERIALISED
    return local.persistent and not shared


def taking_turns(client: Any) -> Any:
    """
    Return *client* such that each of its calls takes a turn.

    Returns:
        An instance of its own class; the same object where it is guarded or takes turns already,
        and where it is no synchronous client of a local store.
    """
    local = local_of(client)
    is_sync = isinstance(client, QdrantClient) and isinstance(local, QdrantLocal)
    if not is_sync or inner_of(client) is not None:
        return client
    turned = object.__new__(_turned_class(cast("Any", type(client))))
    vars(turned)[INNER] = client
    return turned


@lru_cache(maxsize=32)
def _turned_class(base: Any) -> Any:
    """Return the subclass of *base* whose attributes are the inner client's, in turns."""
    own: dict[str, Any] = {
        "__getattribute__": _turned_attribute,
        "__setattr__": _set,
        "__delattr__": _delete,
        "__repr__": _repr,
        "__del__": _stay,
        "__module__": __name__,
        "__doc__": base.__doc__,
    }
    return type(base.__name__, (base,), own)


def _turned_attribute(self: Any, name: str) -> Any:
    if name.startswith("__"):
        return object.__getattribute__(self, name)
    inner = self.__dict__[INNER]
    found = getattr(inner, name)
    if name.startswith("_") or not callable(found):
        return found
    return _in_turn(lock_of(inner._client), cast("Callable[..., Any]", found))  # noqa: SLF001 - see `local_of`


def _set(self: Any, name: str, value: Any) -> None:
    setattr(self.__dict__[INNER], name, value)


def _delete(self: Any, name: str) -> None:
    delattr(self.__dict__[INNER], name)


def _repr(self: Any) -> str:
    return f"<{type(self).__name__} in turns>"


def _stay(_self: Any) -> None:
    # The base's finaliser would close the inner client, which its owner may still use.
    return


def _in_turn(lock: CallLock, call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def called(*args: Any, **kwargs: Any) -> Any:
        with lock:
            return call(*args, **kwargs)

    return called
