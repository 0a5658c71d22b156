"""Receivers on loopback that speak what real back ends speak."""

from __future__ import annotations

import datetime as dt
import email
import email.policy
import gzip
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class HttpReceiver:
    """An HTTP server on a free port that keeps every request and answers as it is told."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.answer: Callable[[BaseHTTPRequestHandler], None] = self.accept
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                receiver.keep(self)
                receiver.answer(self)

            do_GET = do_POST  # noqa: N815 - the name the server looks for

            def log_message(self, *_args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_args: None  # a client that gives up is expected here
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host}:{port}"

    def keep(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        if handler.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.requests.append((handler.path, dict(handler.headers.items()), body))

    @staticmethod
    def respond(
        handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str
    ) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def accept(self, handler: BaseHTTPRequestHandler) -> None:
        self.respond(handler, 200)

    def bodies(self, path: str) -> list[bytes]:
        return [body for seen, _headers, body in self.requests if seen == path]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def http_receiver() -> Iterator[HttpReceiver]:
    """Return an HTTP server that accepts everything."""
    receiver = HttpReceiver()
    yield receiver
    receiver.close()


def write_certificate(path: Path, *, expired: bool = False) -> Path:
    """Write a self-signed certificate for 127.0.0.1, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "collector")])
    now = dt.datetime.now(dt.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=9))
        .not_valid_after(now + dt.timedelta(days=-1 if expired else 1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private = key.private_bytes(pem, pkcs8, serialization.NoEncryption())
    path.write_bytes(private + signed.public_bytes(pem))
    return path


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Return a certificate for 127.0.0.1, with its key."""
    return write_certificate(tmp_path / "collector.pem")


def speak_tls(receiver: HttpReceiver, certificate: Path) -> str:
    """Have *receiver* speak TLS from now on, and return its URL."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = receiver._server
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return receiver.url.replace("http:", "https:")


@pytest.fixture
def secure_receiver(http_receiver: HttpReceiver, certificate: Path) -> HttpReceiver:
    """Return a receiver that speaks TLS."""
    speak_tls(http_receiver, certificate)
    return http_receiver


def otlp_sink(**given: Any) -> Any:
    """Return the OTLP sink, as the environment sets it up."""
    from mnemoscope.telemetry.otlp.sink import OtlpSink

    return OtlpSink(**given)


class OtlpReceiver:
    """
    What an OpenTelemetry collector understands, over either protocol.

    Attributes:
        refuses_with: Status that the gRPC form refuses spans with, or None.
        leave_alone_s: Seconds that it asks for with that status, or None.
        rejects: Spans and data points that it says it did not take.
    """

    def __init__(self) -> None:
        self.refuses_with: Any = None
        self.leave_alone_s: int | None = None
        self.rejects = 0
        self.trace_requests: list[Any] = []
        self.metric_requests: list[Any] = []

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for request in self.trace_requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def resources(self) -> list[dict[str, Any]]:
        return [
            plain(resource.resource.attributes)
            for request in self.trace_requests
            for resource in request.resource_spans
        ]

    def metrics(self) -> dict[str, list[Any]]:
        """Return the data points of the last request, by metric."""
        return {
            metric.name: list(metric.histogram.data_points)
            for resource in self.metric_requests[-1].resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def plain(attributes: Any) -> dict[str, Any]:
    """Return protobuf attributes as a dict."""
    return {each.key: _plain(each.value) for each in attributes}


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    return [_plain(each) for each in found.values] if kind == "array_value" else found


@pytest.fixture
def attributes_of() -> Callable[[Any], dict[str, Any]]:
    """Return how to read the attributes of a span or data point off the wire."""
    return lambda carrier: plain(carrier.attributes)


@pytest.fixture
def otlp_grpc(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtlpReceiver]:
    """Return a collector over gRPC that the environment points to."""
    import grpc
    from google.rpc.error_details_pb2 import RetryInfo
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_grpc
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as traces_grpc

    receiver = OtlpReceiver()

    class Traces(traces_grpc.TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
            if receiver.leave_alone_s is not None:
                info = RetryInfo(retry_delay={"seconds": receiver.leave_alone_s})
                packed = info.SerializeToString()
                context.set_trailing_metadata((("google.rpc.retryinfo-bin", packed),))
            if receiver.refuses_with is not None:
                context.abort(receiver.refuses_with, "no")
            receiver.trace_requests.append(request)
            return traces.ExportTraceServiceResponse(
                partial_success={"rejected_spans": receiver.rejects}
            )

    class Metrics(metrics_grpc.MetricsServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
            receiver.metric_requests.append(request)
            return metrics.ExportMetricsServiceResponse(
                partial_success={"rejected_data_points": receiver.rejects}
            )

    with futures.ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        traces_grpc.add_TraceServiceServicer_to_server(Traces(), server)
        metrics_grpc.add_MetricsServiceServicer_to_server(Metrics(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        yield receiver
        server.stop(0).wait()


class OtlpHttpReceiver(OtlpReceiver):
    """The HTTP form: parses what the plain receiver kept."""

    def __init__(self, http: HttpReceiver) -> None:
        super().__init__()
        self.http = http
        http.answer = self._answer

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

        path, _headers, body = self.http.requests[-1]
        if path == "/v1/traces":
            self.trace_requests.append(traces.ExportTraceServiceRequest.FromString(body))
            partial = {"rejected_spans": self.rejects}
            answer = traces.ExportTraceServiceResponse(partial_success=partial)
        else:
            self.metric_requests.append(metrics.ExportMetricsServiceRequest.FromString(body))
            partial = {"rejected_data_points": self.rejects}
            answer = metrics.ExportMetricsServiceResponse(partial_success=partial)
        said = answer.SerializeToString() if self.rejects else b""
        self.http.respond(handler, 200, said, content_type="application/x-protobuf")


@pytest.fixture
def otlp_http(http_receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch) -> OtlpHttpReceiver:
    """Return a collector over HTTP that the environment points to."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", http_receiver.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    return OtlpHttpReceiver(http_receiver)


@pytest.fixture(params=["grpc", "http"])
def otlp(request: pytest.FixtureRequest) -> OtlpReceiver:
    """Return a collector over each of the two protocols in turn."""
    return request.getfixturevalue(f"otlp_{request.param}")


class LangSmithReceiver:
    """What LangSmith understands: runs, put together from the parts of multipart requests."""

    def __init__(self, http: HttpReceiver) -> None:
        self.http = http
        self.status = 202
        http.answer = self._answer

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        if handler.path == "/info":
            body = json.dumps({"version": "0", "batch_ingest_config": {}}).encode()
            self.http.respond(handler, 200, body, content_type="application/json")
        else:
            self.http.respond(handler, self.status, b"{}", content_type="application/json")

    @property
    def runs(self) -> dict[str, dict[str, Any]]:
        """Return all runs by id, with inputs, outputs, extra, error and events as fields."""
        runs: dict[str, dict[str, Any]] = {}
        for path, headers, body in self.http.requests:
            if path != "/runs/multipart":
                continue
            content_type = next(v for k, v in headers.items() if k.lower() == "content-type")
            for name, value in _parts(content_type, body):
                _kind, run_id, *field = name.split(".")
                run = runs.setdefault(run_id, {})
                run.update({field[0]: value} if field else value)
        return runs


def _parts(content_type: str, body: bytes) -> Iterator[tuple[str, Any]]:
    head = f"content-type: {content_type}\r\n\r\n".encode()
    message = email.message_from_bytes(head + body, policy=email.policy.HTTP)
    for part in message.iter_parts():
        name = part["content-disposition"].params["name"]
        yield name, json.loads(part.get_payload(decode=True))


@pytest.fixture
def langsmith_server(
    http_receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LangSmithReceiver]:
    """Return a LangSmith that the environment points to, and that LangChain's tracer is off for."""
    from langsmith.run_helpers import tracing_context
    from langsmith.utils import get_env_var, get_tracer_project

    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}_V2", raising=False)
    monkeypatch.setenv("LANGSMITH_ENDPOINT", http_receiver.url)
    monkeypatch.setenv("LANGSMITH_API_KEY", "ls-test-key")
    monkeypatch.setenv("LANGSMITH_PROJECT", "tests")
    get_env_var.cache_clear()
    get_tracer_project.cache_clear()
    with tracing_context(parent=False):  # of a run that an earlier test has left around
        yield LangSmithReceiver(http_receiver)
