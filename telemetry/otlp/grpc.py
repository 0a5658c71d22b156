"""The gRPC exporters: for encoded requests too, and with what a collector answers noted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import grpc  # type: ignore[import-untyped]
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from ..network.timeouts import note_request, note_response
from .settings import Signal, setting

_RETRY_INFO: Final = "google.rpc.retryinfo-bin"


class _NotingStub:
    """A stub that notes each answer: the SDK looks at the status alone."""

    def __init__(self, stub: Any) -> None:
        self._stub = stub

    def Export(self, **given: Any) -> Any:  # noqa: N802 - the service's name
        note_request()
        try:
            answer = self._stub.Export(**given)
        except grpc.RpcError as error:
            note_response(None, _delay_s(error))
            raise
        note_response(None, None, answer.SerializeToString)
        return answer


def _delay_s(error: Any) -> float | None:
    metadata: dict[str, bytes] = dict(error.trailing_metadata() or ())
    if (packed := metadata.get(_RETRY_INFO)) is None:
        return None
    delay = RetryInfo.FromString(packed).retry_delay
    return float(delay.seconds + delay.nanos / 1e9)


class _Noting:
    """What the exporters of both signals have of ours."""

    # A property, since the SDK makes its stub anew after each broken connection.
    @property
    def _client(self) -> _NotingStub | None:
        return self._noting

    @_client.setter
    def _client(self, stub: Any) -> None:
        self._noting = None if stub is None else _NotingStub(stub)


def _given(signal: Signal, timeout: float) -> dict[str, Any]:
    # The SDK takes no "none" from the environment, although it is OTLP's own word for the default.
    is_none = setting(signal, "COMPRESSION").lower() == "none"
    return {"timeout": timeout, "compression": grpc.Compression.NoCompression if is_none else None}


class GrpcSpanExporter(_Noting, OTLPSpanExporter):  # type: ignore[misc]
    """Exports as the SDK's own does, with its connection, headers, retries and time."""

    _made: ExportTraceServiceRequest | None = None

    def __init__(self, timeout: float) -> None:
        super().__init__(**_given("TRACES", timeout))

    def send(self, request: bytes) -> SpanExportResult:
        """Send a request in its serialised form."""
        self._made = ExportTraceServiceRequest.FromString(request)
        try:
            return self.export(())
        finally:
            self._made = None

    def _translate_data(self, data: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
        return super()._translate_data(data) if self._made is None else self._made


class GrpcMetricExporter(_Noting, OTLPMetricExporter):  # type: ignore[misc]
    """Exports as the SDK's own does."""

    def __init__(self, timeout: float) -> None:
        super().__init__(**_given("METRICS", timeout))
