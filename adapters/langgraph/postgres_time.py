"""The calls of LangGraph's saver and store on PostgreSQL that stay on their caller's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ...memory.api import BreaksOff, Call, time_left_s
from ..toolkit.own_methods import OwnMethods


def breaks_off(client: Any) -> BreaksOff | None:
    """
    Return what tells whether calls of *client* end by their deadline, and have its waits do so.

    None: it is no saver or store of LangGraph's own on a pool of psycopg's.
    """
    kind = cast("Any", type(client))
    lock: Any = getattr(client, "lock", None)
    if kind.__module__ not in _MODULES or type(lock) not in _LOCKS:
        return None
    from ..toolkit.psycopg_time import ends_in_time  # noqa: PLC0415 - not without psycopg

    ends = ends_in_time(client.conn)
    if ends is None:
        return None
    if type(lock) is not BoundedLock:
        lock = client.lock = BoundedLock(lock)
    own = OwnMethods(kind, "contextlib.py")
    return partial(_may_stay, client, own, (client.conn, lock), ends)


def _may_stay(
    client: Any,
    own: OwnMethods,
    parts: tuple[Any, Any],
    ends: Callable[[], bool],
    _call: Call,
) -> bool:
    # Looked at before each call: any of it may be replaced at any time.
    return (
        (client.conn, client.lock) == parts
        and client.pipe is None
        # Somebody else's serializer or embeddings may wait for whatever they like.
        and getattr(client, "embeddings", None) is None
        and getattr(client, "_deserializer", None) is None
        and getattr(client, "serde", None).__class__ in _SERIALIZERS
        and own.has_all(client)
        and ends()
    )


class BoundedLock:
    """The *lock* of a saver or store, waited for no longer than a guarded call has left."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lock, name)

    def __enter__(self) -> bool:
        left_s = time_left_s()
        if not self._lock.acquire(timeout=-1 if left_s is None else left_s):
            raise TimeoutError("another call has this saver or store")
        return True

    def __exit__(self, *_exc: object) -> None:
        self._lock.release()


_MODULES = "langgraph.checkpoint.postgres", "langgraph.store.postgres.base"
_LOCKS: tuple[Any, ...] = type(threading.Lock()), BoundedLock
_SERIALIZERS = frozenset({JsonPlusSerializer, type(None)})
