"""A line to a PostgreSQL that may fall silent, or drip, while connections are open on it."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import pytest

_LOOK_S = 0.02
_PORT = 5432


class PostgresLine:
    """
    Passes what it is sent on, between TCP and the server's socket.

    Args:
        url: The server's, with the folder of its socket.

    Attributes:
        url: The same database by this line.
        state: What becomes of all connections, open and new. ``silent`` passes nothing on, as a
            network that swallows packets; ``dripping`` passes answers on by a byte each 20 ms.
        connections: How many were opened.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._socket = f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.{_PORT}"
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(_LOOK_S)
        port = self._server.getsockname()[1]
        self.url = f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}"
        self.state: Literal["open", "silent", "dripping"] = "open"
        self.connections = 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._serve)]
        self._threads[0].start()

    def close(self) -> None:
        """End it, and all connections with it."""
        self._stop.set()
        for each in self._threads:
            each.join()
        self._server.close()

    def _serve(self) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                client, _address = self._server.accept()
                self.connections += 1
                self._threads.append(threading.Thread(target=self._pass, args=(client,)))
                self._threads[-1].start()

    def _pass(self, client: socket.socket) -> None:
        upstream = socket.socket(socket.AF_UNIX)
        with client, upstream, contextlib.suppress(OSError):
            upstream.connect(self._socket)
            while not self._stop.is_set():
                if self.state == "silent":
                    self._stop.wait(_LOOK_S / 10)
                    continue
                for ready in select.select([client, upstream], [], [], _LOOK_S)[0]:
                    drips = ready is upstream and self.state == "dripping"
                    data = ready.recv(1 if drips else 65_536)
                    if not data:
                        return
                    (client if ready is upstream else upstream).sendall(data)
                    if drips:
                        self._stop.wait(_LOOK_S)


@pytest.fixture
def postgres_line(postgres_url: str) -> Iterator[PostgresLine]:
    """Return a line to an empty database."""
    line = PostgresLine(postgres_url)
    yield line
    line.close()
