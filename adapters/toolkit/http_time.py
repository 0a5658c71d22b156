"""
The waits of an httpx client, made no longer than a guarded call has left.

httpx's timeouts are of each read or write, so that a server that drips byte by byte is never late.
Connections that are opened here take, for each of them, what the whole call has left. One that is
broken off raises a timeout of httpcore's, and the pool closes that connection as after any other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from ipaddress import ip_address
from operator import attrgetter
from typing import Any

import httpcore
import httpx

from ...memory.api import time_left_s
from ...memory.limits.time_left import sooner_s
from ...memory.limits.workers import Expired, Workers

_PIECE_BYTES = 16_384
"""Bytes that are written at once: a socket takes them whole, so that there is one wait for them."""

# httpx and httpcore have no public place for any of it.
_pool_of = attrgetter("_transport._pool")
_backend_of = attrgetter("_network_backend")
_shape_of = attrgetter("__class__", "_http2", "_retries", "_uds")
_parts_of = attrgetter("__class__", "_transport.__class__", "_mounts")


def ends_in_time(client: Any, workers: Workers) -> Callable[[], bool] | None:
    """
    Return what tells whether requests of *client* end with their call, and have its waits do so.

    None: it is no `httpx.Client` with a pool of httpx's own and HTTP/1.1, or it has a proxy.
    """
    try:
        pool: Any = _pool_of(client)
        is_plain = _shape_of(pool) == (httpcore.ConnectionPool, False, 0, None)
        if not is_plain or _parts_of(client) != _PARTS:
            return None
        backend: Any = _backend_of(pool)
        if backend.__class__ is httpcore.SyncBackend:
            for each in pool.connections:
                if not each.is_idle():
                    return None
                each.close()  # opened before, with waits of its own
            backend = vars(pool)["_network_backend"] = BoundedBackend(backend, workers)
            client.event_hooks["request"].append(_wait_for_pool)
    except AttributeError:  # another version of httpx or httpcore
        return None
    return partial(_is_bounded, client, pool, backend)


def _is_bounded(client: Any, pool: Any, backend: Any) -> bool:
    # Looked at before each call: any of it may be replaced at any time. Somebody else's hooks and
    # authentication may wait for whatever they like.
    return (
        _parts_of(client) == _PARTS
        and _pool_of(client) is pool
        and _backend_of(pool) is backend
        and backend.__class__ is BoundedBackend
        and client.auth is None
        and client.event_hooks == _HOOKS
        and "send" not in vars(client)
    )


def _wait_for_pool(request: httpx.Request) -> None:
    """Have *request* wait for a free connection no longer than its call has left."""
    timeouts = request.extensions.get("timeout", {})
    left_s = time_left_s()
    if left_s is not None:
        pool_s = min(left_s, timeouts.get("pool") or left_s)
        request.extensions = {**request.extensions, "timeout": {**timeouts, "pool": pool_s}}


_PARTS: Any = httpx.Client, httpx.HTTPTransport, {}
_HOOKS = {"request": [_wait_for_pool], "response": []}


class BoundedBackend:
    """Opens connections whose reads and writes end with the call that makes them."""

    def __init__(self, backend: httpcore.NetworkBackend, workers: Workers) -> None:
        self._backend = backend
        self._workers = workers

    def connect_tcp(self, host: str, *, timeout: float | None, **named: Any) -> BoundedStream:
        """Return a connection to *host*. Nothing ends a look-up of its name: a worker makes it."""
        named["timeout"] = sooner_s(timeout, httpcore.ConnectTimeout)
        opened: list[BoundedStream] = []

        def connect() -> None:
            opened.append(BoundedStream(self._backend.connect_tcp(host, **named)))

        def close() -> None:
            for each in opened:
                each.close()

        left_s = time_left_s()
        if left_s is None or _is_address(host):
            connect()
        else:
            try:
                self._workers.run(connect, left_s, close)
            except Expired:
                raise httpcore.ConnectTimeout from None
        return opened[0]


class BoundedStream:
    """A connection whose reads and writes end with the call that makes them."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what has come, as soon as something has."""
        return self._stream.read(max_bytes, sooner_s(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of *buffer*."""
        for start in range(0, len(buffer), _PIECE_BYTES):
            piece = buffer[start : start + _PIECE_BYTES]
            self._stream.write(piece, sooner_s(timeout, httpcore.WriteTimeout))

    def start_tls(self, *, timeout: float | None, **named: Any) -> BoundedStream:
        """Return the same connection, encrypted from now on."""
        named["timeout"] = sooner_s(timeout, httpcore.ConnectTimeout)
        return BoundedStream(self._stream.start_tls(**named))


def _is_address(host: str) -> bool:
    """Tell whether no name server is asked for *host*: it is an address, or this machine."""
    try:
        return host == "localhost" or bool(ip_address(host))
    except ValueError:
        return False
