"""Connections to the console whose clients send nothing, too little, too slowly, or do not read."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import threading
from contextlib import ExitStack, suppress

import httpx
import pytest
import uvicorn

from mnemoscope.adapters.console import PunctualLoop, PunctualProtocol
from tests.kit.patience import GIVE_UP_S, until
from tests.kit.served_console import served, variables_of

HEAD = b"GET / HTTP/1.1\r\nHost: here\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n1;"
SIZED = HEAD + b"Content-Length: 8000\r\n\r\n"
LARGE = 32 << 20


class Server:
    """A server on a thread of its own, whose clients have little time."""

    def __init__(self, **limits):
        self.may_answer = threading.Event()
        protocol = type("Hasty", (PunctualProtocol,), limits)
        config = uvicorn.Config(
            self._answer,
            http=protocol,
            ws="none",
            interface="asgi3",
            lifespan="off",
            log_level="critical",
        )
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(config)
        given = {"sockets": [self._listening]}
        self._thread = threading.Thread(target=self._server.run, kwargs=given)
        self._thread.start()

    async def _answer(self, scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        if scope["path"] == "/long":
            await asyncio.to_thread(self.may_answer.wait, GIVE_UP_S)
        sizes = [1 << 20] * (LARGE >> 20) if scope["path"] == "/large" else [2]
        headers = [(b"content-length", str(sum(sizes)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for number, size in enumerate(sizes, 1):
            more = number < len(sizes)
            await send({"type": "http.response.body", "body": b"a" * size, "more_body": more})

    def connected(self, sent=b""):
        """Return a connection on which *sent* was sent."""
        made = socket.create_connection(self._listening.getsockname(), timeout=GIVE_UP_S)
        made.sendall(sent)
        return made

    def let_time_pass(self):
        """Wait for as long as a silent client may."""
        with self.connected() as silent:
            assert until(lambda: has_ended(silent))

    def stop(self):
        """End it."""
        self.may_answer.set()
        self._server.should_exit = True
        self._thread.join(GIVE_UP_S)


@pytest.fixture
def serve():
    """Return a maker of servers."""
    made = []

    def make(**limits):
        made.append(Server(**{"head_s": 0.2, "rest_s": 0.3, **limits}))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def has_ended(connection, byte=b""):
    """Send *byte*, and return whether the connection has ended."""
    connection.settimeout(0.02)
    try:
        connection.sendall(byte)
        return connection.recv(1 << 16) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def size_of(connection):
    """Return how many bytes still come."""
    sizes = iter(lambda: len(connection.recv(1 << 20)), 0)
    found = 0
    with suppress(ConnectionError):
        for each in sizes:
            found += each
    return found


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize(
    "sent",
    [b"", HEAD, SIZED, SIZED + b"half", CHUNKED, HEAD + b"\r\n" + HEAD],
    ids=[
        "nothing",
        "half a head",
        "no body",
        "half a body",
        "half the chunks",
        "half a second one",
    ],
)
@pytest.mark.parametrize("is_still", [True, False], ids=["still", "byte by byte"])
def test_a_client_that_is_late_is_gone(serve, sent, is_still):
    """Whether it stands still, or sends a byte from time to time."""
    with serve().connected(sent) as connection:
        assert until(lambda: has_ended(connection, b"" if is_still else b"a"))


def test_a_client_that_does_not_read_is_gone(serve):
    """It asks for much, and begins to take it when it is too late."""
    server = serve()
    with server.connected(b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n") as connection:
        for _ in range(8):
            server.let_time_pass()

        assert 1 << 16 < size_of(connection) < LARGE


def test_a_client_that_reads_slowly_is_served(serve):
    """For longer than an answer may stay unread, as long as it goes on reading."""
    server = serve(rest_s=2.0)
    with server.connected(b"GET /large HTTP/1.0\r\nHost: here\r\n\r\n") as connection:
        size = 0
        for _ in range(15):
            server.let_time_pass()
            size += len(connection.recv(2 << 20, socket.MSG_WAITALL))

        assert size + size_of(connection) > LARGE


def test_a_request_that_takes_long_is_answered(serve):
    """Only the client's time is counted, and not that of the site."""
    server = serve()
    with server.connected(b"GET /long HTTP/1.1\r\nHost: here\r\n\r\n") as connection:
        for _ in range(5):
            server.let_time_pass()
        server.may_answer.set()

        assert connection.recv(4_096).startswith(b"HTTP/1.1 200")


def test_a_second_head_has_a_time_of_its_own(serve):
    """From the first answer on, however long that took."""
    server = serve()
    with server.connected(b"GET /long HTTP/1.1\r\nHost: here\r\n\r\n") as connection:
        server.let_time_pass()
        server.let_time_pass()
        server.let_time_pass()
        server.may_answer.set()
        connection.recv(4_096)
        connection.sendall(HEAD)

        assert until(lambda: has_ended(connection, b"a"))


def test_of_many_that_wait_the_oldest_goes(serve):
    """Whoever comes later and asks is answered."""
    server = serve(head_s=GIVE_UP_S, most_waiting=3)
    with ExitStack() as stack:
        waiting = [stack.enter_context(server.connected()) for _ in range(4)]
        is_first = until(lambda: has_ended(waiting[0]))
        still_there = [not has_ended(each) for each in waiting[1:]]
        with server.connected(HEAD + b"\r\n") as last:
            answer = last.recv(4_096)

    assert is_first
    assert still_there == [True, True, True]
    assert answer.startswith(b"HTTP/1.1 200")


def test_a_handshake_has_the_time_of_a_head(monkeypatch):
    """Of TLS: a server would give it a minute by itself."""
    monkeypatch.setattr(PunctualProtocol, "head_s", 0.2)

    async def silent():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        loop = asyncio.get_running_loop()
        async with await loop.create_server(
            asyncio.Protocol, "127.0.0.1", 0, ssl=context
        ) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            said = await reader.read()
            writer.close()
            return said, server._ssl_handshake_timeout  # no public place tells it

    with asyncio.Runner(loop_factory=PunctualLoop) as runner:
        assert runner.run(silent()) == (b"", 0.2)


@pytest.mark.long_but_each(3)
@pytest.mark.parametrize("sent", [b"", HEAD, SIZED], ids=["silent", "half a head", "no body"])
def test_three_hundred_that_ask_nothing_keep_nobody_out(settings, log, sent):
    """Somebody else looks a person up meanwhile."""
    log.append([])
    with (
        served(env=variables_of(settings)) as console,
        httpx.Client(base_url=console.origin, timeout=GIVE_UP_S) as browser,
        ExitStack() as stack,
    ):
        # One that was kept from before would be the oldest that waits.
        browser.headers["connection"] = "close"
        page = browser.get(console.sign_in, follow_redirects=True)
        csrf = re.findall('name="csrf" value="([^"]+)"', page.text)[0]
        host, port = console.origin.removeprefix("http://").split(":")
        for _ in range(300):
            silent = socket.create_connection((host, int(port)), timeout=GIVE_UP_S)
            stack.enter_context(silent).sendall(sent)
        answers = [
            browser.post(
                "/person",
                data={"csrf": csrf, "customer": "c-nobody"},
                headers={"origin": console.origin},
            )
            for _ in range(3)
        ]

    assert ["Nobody is known by that id here" in each.text for each in answers] == [True] * 3
