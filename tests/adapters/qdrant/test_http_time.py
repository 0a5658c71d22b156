"""Calls of a Qdrant server and of mem0's service by REST: ended in time, on their own thread."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle

import httpx
import pytest
from mem0 import MemoryClient
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException

from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S, until

SHORT_S = 0.2
KEPT = httpx.Limits(max_connections=2, max_keepalive_connections=2, keepalive_expiry=int(GIVE_UP_S))


class Server:
    """
    A Qdrant that finds one point, whose id is the query's first number.

    Attributes:
        delay_s: Returns how long it takes for an answer.
        connections: How many were opened.
    """

    def __init__(self):
        self.delay_s, self.connections = (lambda: 0.0), 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                outer.connections += 1
                super().setup()

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                time.sleep(outer.delay_s())
                point = {"id": int(asked["query"]["nearest"][0]), "version": 1, "score": 0.5}
                answer = {"result": {"points": [point]}, "status": "ok", "time": 0.1}
                body = json.dumps(answer).encode()
                try:
                    self.send_response(200)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_args): ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server():
    found = Server()
    yield found
    found.close()


@pytest.fixture
def connect():
    """Return a factory of clients, which wait for a server for a long time."""
    made = []

    def connected(url, **given):
        given = {"timeout": int(GIVE_UP_S), "limits": KEPT} | given
        made.append(QdrantClient(url, check_compatibility=False, **given))
        return made[-1]

    yield connected
    for each in made:
        each.close()


@pytest.fixture
def make_scope():
    """Return a factory of scopes with one deadline for recalls and writes."""
    left = []

    def make(deadline_s=SHORT_S, **given):
        given |= {"deadline_recall_s": deadline_s, "deadline_remember_s": deadline_s}
        holder = scope_for_tests(**given)
        scope, _sink = holder.__enter__()
        left.append(holder)
        assert scope.prepare()
        return scope

    yield make
    for holder in left:
        holder.__exit__(None, None, None)


def found(client, number=7):
    """Return the ids that a query of *client* finds."""
    answer = client.query_points("facts", query=[float(number)], limit=1)
    return [each.id for each in answer.points]


@pytest.fixture
def threads(monkeypatch):
    """Return the threads on which data was received, for whoever asks later."""
    seen, receive = set(), socket.socket.recv

    def noted(self, *given):
        seen.add(threading.get_ident())
        return receive(self, *given)

    monkeypatch.setattr(socket.socket, "recv", noted)
    return seen


class TestTheCallersThread:
    def test_a_query_stays_on_it(self, server, connect, make_scope, threads):
        """A hand-over costs more than what a server near by takes."""
        client = make_scope(GIVE_UP_S).qdrant(connect(server.url))
        answers = [found(client), found(client)]

        assert answers == [[7], [7]]
        assert threads == {threading.get_ident()}
        assert server.connections == 1

    @pytest.mark.parametrize(
        "what", ["hook", "auth", "transport", "proxy", "method", "middleware", "setting", "busy"]
    )
    def test_what_somebody_else_brought_has_a_thread(
        self, server, connect, make_scope, threads, what, monkeypatch
    ):
        """What that waits for nobody knows."""
        if what == "proxy":
            monkeypatch.setenv("NO_PROXY", "elsewhere.example")
            monkeypatch.setenv("HTTP_PROXY", server.url)
        bare = connect(server.url)
        api = bare._client.openapi_client.client
        if what == "middleware":
            api.add_middleware(lambda request, send: send(request))
        if what == "auth":
            api._client.auth = ("ada", "secret")
        if what == "transport":
            api._client._transport = type("Own", (httpx.HTTPTransport,), {})()
        if what == "busy":
            beside = api._client.stream("POST", f"{server.url}/x", json={"query": {"nearest": [1]}})
            beside.__enter__()
        scope = make_scope(GIVE_UP_S, deadline_threads=what == "setting")
        client = scope.qdrant(bare)
        if what == "hook":
            api._client.event_hooks["request"].append(lambda _request: None)
        if what == "method":
            bare.query_points = bare.query_points
        if what == "proxy":
            client.query_points("facts", query=[7.0], limit=1)
        else:
            assert found(client) == [7]
        if what == "busy":
            beside.__exit__(None, None, None)
            threads -= {threading.get_ident()} if len(threads) > 1 else set()

        assert threads.isdisjoint({threading.get_ident()})

    def test_a_connection_that_was_there_is_not_used(self, server, connect, make_scope, threads):
        """Its waits are httpx's own: the pool opens another one in its place."""
        bare = connect(server.url)
        found(bare)
        found(make_scope(GIVE_UP_S).qdrant(bare))

        assert server.connections == 2
        assert threads == {threading.get_ident()}


class TestEveryWait:
    @pytest.fixture(params=[False, True], ids=["by the client", "by a thread"])
    def make_scope(self, make_scope, request):
        """Return a factory of scopes that keep deadlines in one of the two ways."""
        return partial(make_scope, deadline_threads=request.param)

    @pytest.mark.parametrize("mode", ["swallow", "drip"])
    def test_for_an_answer_ends(self, fault_proxy, server, connect, make_scope, mode, monkeypatch):
        """And its connection is not used again: the next call has its own answer."""
        # A busy machine wakes nobody for longer than the 50 ms; the client itself waits twice this.
        monkeypatch.setattr("mnemoscope.memory.guard.deadline.HELD_S", GIVE_UP_S / 2)
        proxy = fault_proxy(server.url, mode)
        bare, scope = connect(proxy.url), make_scope()
        client = scope.qdrant(bare)
        answer, was = found(client), scope.last_outcome()
        proxy.mode = "pass"

        assert answer == []
        assert (was.status, was.neutral, was.late) == ("timeout", True, True)
        assert not any("not broken off" in each.detail for each in scope.health(GIVE_UP_S).checks)
        assert found(make_scope(GIVE_UP_S).qdrant(bare)) == [7]
        assert proxy.connections == 2

    def test_for_an_answer_that_never_ends_ends(self, connect, make_scope):
        """It comes as fast as it is read, so that no read of it waits at all."""
        stop, scope = threading.Event(), make_scope()
        with socket.create_server(("127.0.0.1", 0)) as listening:

            def pour():
                client, _address = listening.accept()
                with client, contextlib.suppress(OSError):
                    client.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                    while not stop.is_set():
                        client.sendall(b"1\r\n \r\n" * 10)

            pouring = threading.Thread(target=pour)
            pouring.start()
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            answer = found(scope.qdrant(connect(url)))
            stop.set()
            pouring.join(GIVE_UP_S)

        assert answer == []
        assert scope.last_outcome().status == "timeout"

    def test_for_a_handshake_ends(self, fault_proxy, connect, make_scope):
        """Where a connection is encrypted, before anything is asked on it."""
        scope, url = make_scope(), fault_proxy(mode="swallow").url.replace("http:", "https:")

        assert found(scope.qdrant(connect(url))) == []
        assert scope.last_outcome().status == "timeout"

    def test_for_a_connection_ends(self, unanswered, connect, make_scope):
        """A firewall that drops what it does not like answers nothing at all."""
        scope = make_scope()

        assert found(scope.qdrant(connect(unanswered))) == []
        assert scope.last_outcome().status == "timeout"

    def test_for_a_reader_ends(self, connect, make_scope):
        """A server that takes nothing holds whoever writes."""
        few = (socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        scope = make_scope(2.0)
        with socket.socket() as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            bare = connect(url, transport=httpx.HTTPTransport(socket_options=[few]))
            asked = [models.QueryRequest(query=[0.123456789] * 2_000, limit=1)] * 20
            scope.qdrant(bare).query_batch_points("facts", asked)

        assert scope.last_outcome().status == "timeout"

    def test_for_a_name_ends(self, connect, make_scope, monkeypatch):
        """Nothing ends a look-up: it is made on a worker, which is left to itself."""
        go, look_up, asked = threading.Event(), socket.getaddrinfo, []

        def hanging(host, *given, **named):
            if host != "qdrant.example":
                return look_up(host, *given, **named)
            asked.append(threading.get_ident())
            go.wait(GIVE_UP_S)
            raise socket.gaierror

        monkeypatch.setattr(socket, "getaddrinfo", hanging)
        scope = make_scope()
        answer = found(scope.qdrant(connect("http://qdrant.example:6333")))
        status = scope.last_outcome().status
        go.set()

        assert answer == []
        assert status == "timeout"
        assert asked
        assert threading.get_ident() not in asked

    def test_for_a_free_connection_ends(self, fault_proxy, connect, make_scope):
        """All of the pool's are taken, by calls of the application's that hang."""
        proxy = fault_proxy(mode="swallow")
        bare, scope = connect(proxy.url), make_scope()
        client = scope.qdrant(bare)
        beside = [threading.Thread(target=_tried, args=(bare,)) for _ in range(2)]
        for each in beside:
            each.start()
        assert until(lambda: proxy.connections == 2)
        answer, status = found(client), scope.last_outcome().status
        were_at_work = all(each.is_alive() for each in beside)
        proxy.close()
        for each in beside:
            each.join(GIVE_UP_S)

        assert answer == []
        assert status == "timeout"
        assert were_at_work

    def test_of_the_hosted_service_ends(self, fault_proxy, make_scope, monkeypatch):
        """mem0's client waits five minutes for it."""
        monkeypatch.setattr(MemoryClient, "_validate_api_key", _validated)
        proxy, scope = fault_proxy(mode="drip"), make_scope()
        with httpx.Client(timeout=GIVE_UP_S) as transport:
            client = scope.mem0(MemoryClient("m0-key", proxy.url, client=transport))
            answer = client.search("tea", filters={"user_id": "ada"})

        assert answer == {"results": []}
        assert scope.last_outcome().status == "timeout"


def _validated(client):
    """Know what the service says of a key, without asking it."""
    client.org_id, client.project_id = "o-1", "p-1"
    return ""


def _tried(client):
    with contextlib.suppress(ResponseHandlingException):
        found(client)


class TestTheApplication:
    def test_keeps_its_call_beside_one_that_is_broken_off(self, server, connect, make_scope):
        """On the same client: it has its answer, after a time that no guarded call has."""
        server.delay_s = lambda: 4 * SHORT_S
        bare, answers = connect(server.url), []
        client = make_scope().qdrant(bare)
        beside = threading.Thread(target=lambda: answers.append(found(bare, 5)))
        beside.start()
        answer = found(client)
        beside.join(GIVE_UP_S)

        assert answer == []
        assert answers == [[5]]

    def test_never_has_the_answer_of_another_call(self, server, connect, make_scope):
        """Answers that come just before, at, and after the deadline, on connections that stay."""
        delays = cycle([0.005, 0.029, 0.031, 0.03, 0.02, 0.0305, 0.028, 0.04])
        server.delay_s = lambda: next(delays)
        client, wrong, answered = make_scope(0.03).qdrant(connect(server.url)), [], []

        def ask(first):
            for number in range(first, first + 60):
                ids = found(client, number)
                (answered if ids == [number] else wrong if ids else []).append(number)

        callers = [threading.Thread(target=ask, args=(first,)) for first in (1_000, 2_000)]
        for each in callers:
            each.start()
        for each in callers:
            each.join(GIVE_UP_S)

        assert wrong == []
        assert answered
