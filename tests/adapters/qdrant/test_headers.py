"""Requests to a Qdrant server carry the ids of the operation that made them."""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import grpc
import httpx
import pytest
from opentelemetry import context as otel_context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    TraceState,
    set_span_in_context,
)
from qdrant_client import AsyncQdrantClient, context_headers
from qdrant_client.grpc import (
    CountResponse,
    CountResult,
    PointsServicer,
    add_PointsServicer_to_server,
)

from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.adapters.qdrant import headers as qdrant_headers
from mnemoscope.adapters.qdrant.headers import RequestHeaders
from mnemoscope.adapters.qdrant.methods import METHODS
from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory.api import Event, Operation
from mnemoscope.telemetry.event.event import Journalled
from tests.kit.bench import Bench, wrapping

from .conftest import COLLECTION, Asked

HOST = SpanContext(
    0xA1,
    0xB1,
    is_remote=False,
    trace_flags=TraceFlags(TraceFlags.SAMPLED),
    trace_state=TraceState([("vendor", "42")]),
)


@contextmanager
def inside_a_span(span: SpanContext = HOST) -> Iterator[None]:
    """Make the host's *span* the current one."""
    token = otel_context.attach(set_span_in_context(NonRecordingSpan(span)))
    yield
    otel_context.detach(token)


class Server:
    """
    A Qdrant on loopback that counts to three, over both protocols.

    Attributes:
        url: Where REST is spoken.
        grpc_port: Where gRPC is.
        seen: Headers of each request, over whichever, their names in lower case.
    """

    def __init__(self, receiver: Any) -> None:
        self.seen: list[dict[str, str]] = []
        self.url: str = receiver.url
        receiver.answer = self._answer
        server = self

        class Points(PointsServicer):
            def Count(self, _request: Any, context: grpc.ServicerContext) -> CountResponse:  # noqa: N802 - the name in the protocol
                server.keep(context.invocation_metadata())
                return CountResponse(result=CountResult(count=3), time=0.0)

        self._grpc = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
        add_PointsServicer_to_server(Points(), self._grpc)
        self.grpc_port = self._grpc.add_insecure_port("127.0.0.1:0")
        self._grpc.start()

    def keep(self, headers: Any) -> None:
        self.seen.append({name.lower(): value for name, value in headers})

    def _answer(self, handler: Any) -> None:
        self.keep(handler.headers.items())
        body = json.dumps({"result": {"count": 3}, "status": "ok", "time": 0.0}).encode()
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def close(self) -> None:
        self._grpc.stop(None).wait()


@pytest.fixture
def server(http_receiver: Any) -> Iterator[Server]:
    """Return a Qdrant that speaks both."""
    made = Server(http_receiver)
    yield made
    made.close()


@pytest.fixture(params=["rest", "grpc"])
async def ask(
    request: pytest.FixtureRequest, client_type: type, bench: Bench, server: Server
) -> Any:
    """Return a guarded client of `server`, sync and async and over each protocol."""
    inner = client_type(
        url=server.url,
        grpc_port=server.grpc_port,
        prefer_grpc=request.param == "grpc",
        check_compatibility=False,
    )
    yield Asked(wrapping(qdrant.ADAPTER)(inner, bench), inner)
    await Asked.of(inner, "close")


async def test_a_request_carries_the_operations_own_span(
    ask: Asked, server: Server, events: Callable[[], list[Event]]
):
    """``traceparent`` names the event's span, not the host's, on whichever thread it is sent."""
    with inside_a_span():
        assert (await ask("count", COLLECTION)).count == 3
    (event,), (headers,) = events(), server.seen

    assert event.trace.parent_span_id == HOST.span_id
    assert headers["traceparent"] == f"00-{HOST.trace_id:032x}-{event.trace.span_hex}-01"


async def test_the_request_id_is_what_events_and_audit_rows_have(
    ask: Asked, server: Server, events: Callable[[], list[Event]]
):
    """Qdrant's audit log joins ours by ``x-request-id``: the span's id."""
    await ask("count", COLLECTION)
    await ask("count", COLLECTION)

    assert [each["x-request-id"] for each in server.seen] == [
        each.trace.span_hex for each in events()
    ]


async def test_the_hosts_tracestate_goes_along(ask: Asked, server: Server):
    """What vendors keep in ``tracestate`` reaches the server, in the trace that it belongs to."""
    with inside_a_span():
        await ask("count", COLLECTION)
    await ask("count", COLLECTION)

    assert [each.get("tracestate") for each in server.seen] == ["vendor=42", None]


async def test_a_trace_that_is_not_sampled_says_so(ask: Asked, server: Server):
    """The last part of ``traceparent`` is the host's decision."""
    unsampled = SpanContext(0xA1, 0xB1, is_remote=False, trace_flags=TraceFlags(0))
    with inside_a_span(unsampled):
        await ask("count", COLLECTION)

    assert server.seen[0]["traceparent"].endswith("-00")


async def test_headers_of_the_hosts_own_stay(ask: Asked, server: Server):
    """Whoever sends an ``X-Request-Id`` of his own gets that one, once, and ours beside it."""
    with context_headers.headers({"x-request-id": "mine", "x-team": "sales"}):
        await ask("count", COLLECTION)
    (headers,) = server.seen

    assert (headers["x-request-id"], headers["x-team"]) == ("mine", "sales")
    assert "traceparent" in headers


async def test_a_call_inside_another_carries_its_own(
    ask: Asked, bench: Bench, server: Server, events: Callable[[], list[Event]]
):
    """Such as one of a client below a function that is guarded as one that sends requests."""
    guard = bench.guard("outer", around=(RequestHeaders(bench.faults),))
    method = replace(METHODS["count"], name="outer")

    async def both(_given: object) -> None:
        await ask("count", COLLECTION)

    await guard.acall(Operation(method, {}), both)

    inner, outer = events()
    assert (inner.method, outer.method) == ("count", "outer")
    assert server.seen[0]["x-request-id"] == inner.trace.span_hex


async def test_nothing_of_it_is_left_behind(ask: Asked, server: Server):
    """A request that is not ours carries nothing of ours."""
    await ask("count", COLLECTION)
    await ask.bare("count", COLLECTION)

    assert context_headers.get_context_headers() == {}
    assert "traceparent" not in server.seen[1]


async def test_no_headers_are_no_failure(
    ask: Asked, server: Server, bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    """An error while they are made is counted, and the request is sent without them."""

    def broken(_ref: object) -> dict[str, str]:
        raise RuntimeError("a span that cannot be read")

    monkeypatch.setattr(qdrant_headers, "headers_of", broken)

    assert (await ask("count", COLLECTION)).count == 3
    assert bench.faults.counts["qdrant.headers"] == 1
    assert "traceparent" not in server.seen[0]


async def test_calls_at_the_same_time_carry_their_own(
    bench: Bench, server: Server, events: Callable[[], list[Event]]
):
    """Tasks of one loop do not see each other's ids."""
    inner = AsyncQdrantClient(url=server.url, check_compatibility=False)
    client = wrapping(qdrant.ADAPTER)(inner, bench)
    await asyncio.gather(*(client.count(COLLECTION) for _ in range(8)))
    await inner.close()

    sent = {each["x-request-id"] for each in server.seen}
    assert sent == {each.trace.span_hex for each in events()}
    assert len(sent) == 8


async def test_a_write_that_is_made_again_carries_the_ids_of_that(
    journal: object, remote: Any, replay: Any, client_type: type, events: Callable[[], list[Event]]
):
    """What the journal kept is written by an operation of its own, and the server is told which."""
    statuses = iter((503, 200))
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["x-request-id"])
        result = {"operation_id": 1, "status": "completed"}
        return httpx.Response(next(statuses), json={"result": result, "status": "ok", "time": 0})

    asked = remote(answer, name="qdrant.test")
    await asked("set_payload", COLLECTION, payload={"size": 1}, points=[1])
    await replay(asked.client, is_async=client_type is AsyncQdrantClient)

    journalled = [each.journal for each in events()]
    assert journalled == [Journalled.APPENDED, Journalled.REPLAYED]
    assert seen == [each.trace.span_hex for each in events()]


async def test_a_call_that_is_ended_from_elsewhere_is_ended_quietly(bench: Bench):
    """A coroutine that another context closes, as the collector does, raises nothing."""

    class Forever:
        def __await__(self) -> Iterator[None]:
            yield

    class Waits(httpx.AsyncBaseTransport):
        async def handle_async_request(self, _request: httpx.Request) -> httpx.Response:
            await Forever()
            raise AssertionError("went on")

    inner = AsyncQdrantClient(
        url="http://qdrant.test", transport=Waits(), check_compatibility=False
    )
    bench.policy = replace(bench.policy, deadlines_s={})
    waiting = wrapping(qdrant.ADAPTER)(inner, bench).count(COLLECTION)
    contextvars.copy_context().run(waiting.send, None)
    waiting.close()
    await inner.close()

    assert context_headers.get_context_headers() == {}


async def test_a_local_client_has_no_part_in_it(make_local: Any, monkeypatch: pytest.MonkeyPatch):
    """Where no request is sent, no header is made."""
    monkeypatch.setattr(qdrant_headers, "headers_of", None)
    asked = make_local()

    assert guard_of(asked.client).deadline._around == ()
