"""Why the timeout of a client's own takes no deadline's place."""

from __future__ import annotations

import json
import threading

import httpcore
import httpx
from qdrant_client import QdrantClient

from mnemoscope.adapters.qdrant import adapter as qdrant
from tests.kit.bench import wrapping

TIMEOUT_S = 7
BODY = json.dumps(
    {"result": {"points": [{"id": 1, "version": 1, "score": 0.9}]}, "status": "ok", "time": 0.1}
).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(
    BODY
)


class Dripping(httpcore.NetworkBackend, httpcore.NetworkStream):
    """A server whose answer comes byte by byte, and what each wait for one was allowed."""

    def __init__(self):
        self.left = HEAD + BODY
        self.waits_s: list[float | None] = []
        self.threads: set[int] = set()

    def connect_tcp(self, *_where, **_how):
        return self

    def read(self, _most, timeout=None):
        self.waits_s.append(timeout)
        self.threads.add(threading.get_ident())
        first, self.left = self.left[:1], self.left[1:]
        return first

    def write(self, _data, timeout=None):
        del timeout

    def get_extra_info(self, _info):
        return None

    def close(self):
        self.left = b""


def dripped_on(server):
    """Return a client of Qdrant's whose requests *server* answers."""
    client = QdrantClient("http://qdrant.invalid", timeout=TIMEOUT_S, check_compatibility=False)
    transport = httpx.HTTPTransport()
    transport._pool = httpcore.ConnectionPool(network_backend=server)
    client._client.http.client._client._transport = transport
    return client


def test_a_clients_timeout_is_of_each_read():
    """A server that drips is never late: the whole call may take that long for each byte."""
    server = Dripping()

    assert dripped_on(server).query_points("notes", query=[1.0]).points
    assert set(server.waits_s) == {TIMEOUT_S}
    assert len(server.waits_s) >= len(BODY)


def test_a_call_with_a_timeout_of_its_clients_has_a_thread_and_a_deadline(bench):
    """Nothing else bounds all of it."""
    server = Dripping()

    assert wrapping(qdrant.ADAPTER)(dripped_on(server), bench).query_points("notes", query=[1.0])
    assert server.threads
    assert threading.get_ident() not in server.threads
