"""Back ends that misbehave, in each of the ways that happens, and a proxy that can at any time."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest

from tests.kit.patience import until
from tests.kit.receivers import HttpReceiver

Mode = Literal["pass", "swallow", "drip", "reset", "lose answer"]


class FaultProxy:
    """
    Passes connections on to a back end, or mistreats them.

    * ``pass``: on to *upstream*
    * ``swallow``: let in and never answered: a black hole
    * ``drip``: answered by a byte each 50 ms, which resets every timeout for a single read
    * ``reset``: cut in the middle of the request
    * ``lose answer``: passed on whole, and cut before the answer: did it arrive?

    Args:
        upstream: URL of the real back end.
        mode: What the first connections meet.
        listening: Refuse connections until `listen`. The port stays ours.

    Attributes:
        mode: What the next connection meets; change it at any time.
        connections: How many were let in.
    """

    def __init__(
        self, upstream: str | None = None, mode: Mode = "pass", *, listening: bool = True
    ) -> None:
        self.mode: Mode = mode
        self.connections = 0
        self._upstream = upstream and (urlsplit(upstream).hostname, urlsplit(upstream).port)
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._swallowed: list[socket.socket] = []
        self._server = socket.socket()
        # Bound and not listening: refused, and nobody else can be given the port meanwhile.
        self._server.bind(("127.0.0.1", 0))
        if listening:
            self.listen()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.getsockname()[1]}"

    def listen(self) -> None:
        """Accept connections from now on."""
        self._server.listen()
        self._server.settimeout(0.02)
        self._begin(self._serve)

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for each in (self._server, *self._swallowed):
            each.close()

    def _begin(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                client, _address = self._server.accept()
                client.settimeout(None)
                self.connections += 1
                if self.mode == "swallow":
                    self._swallowed.append(client)
                else:
                    self._begin(self._meet, client, self.mode)

    def _meet(self, client: socket.socket, mode: Mode) -> None:
        with client, contextlib.suppress(OSError):
            if mode == "reset":
                client.recv(16)
                _cut(client)
            elif mode == "drip":
                self._drip(client)
            else:
                self._pass(client, loses_answer=mode == "lose answer")

    def _drip(self, client: socket.socket) -> None:
        client.recv(65_536)
        for byte in b"HTTP/1.1 200 OK\r\nx-slow: " + b"z" * 10_000:
            if self._stop.wait(0.05):
                return
            client.send(bytes([byte]))

    def _pass(self, client: socket.socket, *, loses_answer: bool) -> None:
        with socket.create_connection(self._upstream) as upstream:
            other = {client: upstream, upstream: client}
            while not self._stop.is_set():
                for ready in select.select(list(other), [], [], 0.02)[0]:
                    data = ready.recv(65_536)
                    if not data:
                        return
                    if ready is upstream and loses_answer:
                        _cut(client)
                        return
                    other[ready].sendall(data)


def _cut(connection: socket.socket) -> None:
    """Close with a reset instead of a goodbye."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.fixture
def fault_proxy() -> Iterator[Callable[..., FaultProxy]]:
    """Return a factory of fault proxies."""
    made: list[FaultProxy] = []

    def make(*args: Any, **given: Any) -> FaultProxy:
        made.append(FaultProxy(*args, **given))
        return made[-1]

    yield make
    for proxy in made:
        proxy.close()


@pytest.fixture
def unanswered() -> Iterator[str]:
    """Return the URL of a host that answers no SYN, as behind a firewall that drops."""
    with socket.socket() as server, contextlib.ExitStack() as waiting:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        # What overflows the backlog is dropped by the kernel without a word.
        for _ in range(4):
            caller = waiting.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(server.getsockname())
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def _proxy(mode: Mode = "pass", *, listening: bool = True) -> Iterator[str]:
    proxy = FaultProxy(mode=mode, listening=listening)
    yield proxy.url
    proxy.close()


def _answers(status: int, body: bytes = b"", **headers: str) -> Iterator[str]:
    receiver = HttpReceiver()
    receiver.answer = lambda handler: receiver.respond(handler, status, body, **headers)
    yield receiver.url
    receiver.close()


BROKEN_BACK_ENDS: dict[str, Callable[[], Iterator[str]]] = {
    "refuses": lambda: _proxy(listening=False),
    "swallows": lambda: _proxy("swallow"),
    "drips": lambda: _proxy("drip"),
    "resets": lambda: _proxy("reset"),
    "overloaded": lambda: _answers(503),
    "throttles": lambda: _answers(429, retry_after="3600"),
    "unauthorized": lambda: _answers(401),
    "redirects": lambda: _answers(302, location="http://127.0.0.1:9/login"),
    "portal": lambda: _answers(200, b"<html>log in</html>", content_type="text/html"),
}


@pytest.fixture(params=list(BROKEN_BACK_ENDS))
def broken_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the URL of a back end that takes nothing, in each of the ways that happens."""
    yield from BROKEN_BACK_ENDS[request.param]()


@pytest.fixture
def black_hole() -> Iterator[str]:
    """Return the URL of a back end that never answers."""
    yield from _proxy("swallow")


@pytest.fixture
def no_new_threads() -> Iterator[None]:
    """Fail the test if it leaves a thread behind."""
    before = set(threading.enumerate())
    yield
    until(lambda: not set(threading.enumerate()) - before)

    assert set(threading.enumerate()) <= before
