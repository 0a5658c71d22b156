"""The gRPC exporter, for encoded requests as well as for spans."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult


class GrpcSpanExporter(OTLPSpanExporter):
    """Exports as the SDK's own does, with its connection, headers, retries and time."""

    _made: ExportTraceServiceRequest | None = None

    def send(self, request: bytes) -> SpanExportResult:
        """Send a request in its serialised form."""
        self._made = ExportTraceServiceRequest.FromString(request)
        try:
            return self.export(())
        finally:
            self._made = None

    def _translate_data(self, data: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
        return super()._translate_data(data) if self._made is None else self._made
