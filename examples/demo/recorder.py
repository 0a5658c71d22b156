"""
A server on loopback that records what an OTLP collector and LangSmith would receive.

It takes OTLP/HTTP protobuf on ``/v1/traces`` and ``/v1/metrics``, and LangSmith's ``/info`` and
``/runs/multipart``. The demo counts what arrived here, independently of what was sent.
"""

from __future__ import annotations

import gzip
import json
import threading
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self, cast

_INFO = {
    "version": "0",
    "batch_ingest_config": {
        "use_multipart_endpoint": True,
        "size_limit": 100,
        "size_limit_bytes": 20_971_520,
    },
}


class CollectorServer:
    """
    A server on a free port of 127.0.0.1, while it is entered.

    Requests are kept unparsed until they are read: parsing them would take time from the agent that
    is being measured.
    """

    def __init__(self) -> None:
        self._requests: list[_Request] = []
        handler = type("Handler", (_Handler,), {"requests": self._requests})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        # Shutting down takes one poll, which is half a second by default.
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="demo-recorder", daemon=True
        )

    def __enter__(self) -> Self:
        """Start serving."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop serving, and keep what was received."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def spans(self) -> list[dict[str, Any]]:
        """Return the spans received: OTLP's JSON form, with attributes by name."""
        # What was answered too late comes again, here as anywhere else.
        received = [span for each in self._sent_to("/v1/traces") for span in _spans(each.body)]
        return list({(each["traceId"], each["spanId"]): each for each in received}.values())

    def metric_names(self) -> set[str]:
        """Return the names of the OTLP metrics received."""
        return {name for each in self._sent_to("/v1/metrics") for name in _metric_names(each.body)}

    def runs(self) -> list[dict[str, Any]]:
        """Return the LangSmith runs received, each assembled from its parts."""
        received = map(_runs, self._sent_to("/runs/multipart"))
        return list({run_id: run for each in received for run_id, run in each.items()}.values())

    def _sent_to(self, path: str) -> list[_Request]:
        return [each for each in self._requests if each.path.endswith(path)]


class _Request(NamedTuple):
    path: str
    content_type: str
    body: bytes


class _Handler(BaseHTTPRequestHandler):
    """Reads, keeps and answers each request of one connection."""

    requests: list[_Request]
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True  # else an answer waits 40 ms for the last acknowledgement

    def do_GET(self) -> None:
        """Answer LangSmith's request for the server's capabilities."""
        self._answer(json.dumps(_INFO).encode())

    def do_POST(self) -> None:
        """Keep spans, metrics or runs."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.requests.append(_Request(self.path, self.headers.get("content-type", ""), body))
        self._answer(b"")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name for it
        """Log nothing: the screen is the demo's."""


def _spans(body: bytes) -> list[dict[str, Any]]:
    from google.protobuf.json_format import (  # type: ignore[import-untyped]  # noqa: PLC0415 - with the exporter
        MessageToDict,
    )
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: PLC0415

    request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
    return [
        MessageToDict(span)
        | {
            "traceId": span.trace_id.hex(),
            "spanId": span.span_id.hex(),
            "parentSpanId": span.parent_span_id.hex() or None,
            "attributes": {each.key: _value(each.value) for each in span.attributes},
        }
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None


def _metric_names(body: bytes) -> set[str]:
    from opentelemetry.proto.collector.metrics.v1 import (  # noqa: PLC0415 - with the exporter
        metrics_service_pb2,
    )

    request = metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)
    return {
        metric.name
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def _runs(request: _Request) -> dict[str, dict[str, Any]]:
    """Assemble runs by id from parts named ``post.<id>`` and ``post.<id>.<field>``."""
    head = f"content-type: {request.content_type}\r\n\r\n".encode()
    found: dict[str, dict[str, Any]] = {}
    for part in message_from_bytes(head + request.body).walk():
        if part.is_multipart():
            continue
        name = str(part.get_param("name", header="content-disposition"))
        _verb, run_id, *field = name.split(".", 2)
        content = json.loads(_content(part))
        found.setdefault(run_id, {}).update({field[0]: content} if field else content)
    return found


def _content(part: Message) -> bytes:
    content = cast("bytes", part.get_payload(decode=True))
    return gzip.decompress(content) if part["content-encoding"] == "gzip" else content
