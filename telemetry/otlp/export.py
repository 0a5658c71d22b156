"""
Export to a collector, for hosts that have no OpenTelemetry SDK set up.

The SDK's batch processor and periodic reader bring threads, locks on the caller's path and an exit
that waits 10 s and more for a dead collector. A lane already has the queue and the thread, so here
the providers only build, memory collects, and the exporters are called by the lane itself.

The exporters read ``OTEL_EXPORTER_OTLP_*``, ``OTEL_RESOURCE_ATTRIBUTES``, ``OTEL_SERVICE_NAME`` and
``OTEL_TRACES_SAMPLER`` themselves.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final, cast

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    InMemoryMetricReader,
    MetricExporter,
    MetricExportResult,
    MetricsData,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ..delivery.sink import DeliveryError, UnacceptableError, UnavailableError
from ..event.event import Event
from ..network.http import BoundedSession
from ..network.timeouts import (
    answered,
    answered_body,
    failure,
    quiet,
    suppressed_args,
    time_limit,
)
from .conventions import semconv
from .fast.direct import direct_spans
from .histograms import OwnHistograms, keeps_defaults
from .metrics import Instruments, Pairs, instruments_of
from .settings import GRPC, metrics_every_s, protocol, timeout_s
from .spans import DeferredSpans
from .streams import STREAMS

_COLLECTOR: Final = "the OTLP collector"
_LOGGERS: Final = (
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
)


class OwnTraces:
    """
    Exports spans: encoded directly if the SDK would send the same, else built by the SDK.

    Args:
        resource: What the spans are attributed to. None: what the environment says.
        content: Whether redacted content goes onto spans.
    """

    def __init__(self, resource: Resource | None = None, *, content: bool = False) -> None:
        # Not the global one, which is the host's to set; and no exit handler of the SDK's, which
        # may wait for 30 s.
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._built = InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(self._built))
        self._spans = DeferredSpans(provider, content=content)
        self._protocol = protocol("TRACES")
        self._timeout_s = timeout_s("TRACES")
        self._exporter = _span_exporter(self._timeout_s)
        self._send = sender_of(self._exporter)
        self._direct = self._send and direct_spans(provider, self._build, content=content)

    def deliver(self, batch: Sequence[Event]) -> int:
        """Export the spans of *batch*, or raise; return how many the collector rejected."""
        # Decided when the event was made, so that all sinks and the host agree on a trace.
        sampled = [event for event in batch if event.trace.sampled]
        if not sampled:
            return 0
        request = self._request(sampled)
        # The exporter's own timeout is that of one attempt, and it makes several.
        with quiet(*_LOGGERS), time_limit(self._timeout_s):
            if request is not None and self._send is not None:
                result = self._send(request)
            else:
                spans = self._build(sampled)
                result = self._exporter.export(spans) if spans else SpanExportResult.SUCCESS
        if result is not SpanExportResult.SUCCESS:
            raise _failure(self._protocol)
        return _rejected(ExportTraceServiceResponse, "rejected_spans")

    def _request(self, batch: Sequence[Event]) -> bytes | None:
        """Return the encoded request, or None if the SDK has to encode *batch*."""
        if self._direct is None:
            return None
        try:
            return self._direct.request(batch)
        # One event that is odd: the SDK may still know how to encode it, and says what it drops.
        except (TypeError, ValueError, OverflowError, struct.error):
            return None

    def _build(self, batch: Sequence[Event]) -> Sequence[ReadableSpan]:
        for event in batch:
            self._spans.write(event)
        spans = self._built.get_finished_spans()
        self._built.clear()
        return spans

    def close(self) -> None:
        """Let go of the connection."""
        with quiet(*_LOGGERS):
            self._exporter.shutdown()


class OwnMetrics:
    """
    Metrics exported by `deliver` on the lane's own thread.

    Args:
        resource: What the metrics are attributed to. None: what the environment says.
        clock: Monotonic seconds.

    Attributes:
        is_behind: Whether something was measured since the last export that arrived.
        has_failed: Whether the last export did not arrive.
    """

    is_behind = has_failed = False

    def __init__(
        self, resource: Resource | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._protocol = protocol("METRICS")
        self._timeout_s = timeout_s("METRICS")
        self._exporter = _metric_exporter(self._timeout_s)
        self._stream = STREAMS.take()
        about: Pairs = ((semconv.STREAM, self._stream),) if self._stream > 1 else ()
        self.instruments: Instruments[Any]
        self._collect: Callable[[], MetricsData | None]
        if keeps_defaults():
            own = OwnHistograms(resource, about=about)
            self.instruments, self._collect = own.instruments, own.collect
        else:
            reader = InMemoryMetricReader(**_preferences(self._exporter))
            provider = MeterProvider([reader], resource, shutdown_on_exit=False)
            self.instruments = instruments_of(provider, about)
            self._collect = reader.get_metrics_data
        self._every_s = metrics_every_s()
        self._clock = clock
        self._next_at = float("-inf")

    @property
    def is_due(self) -> bool:
        """True when the last export is an interval ago."""
        return self._clock() >= self._next_at

    def deliver(self) -> None:
        """Export the current state of all metrics, or raise."""
        self._next_at, self.has_failed = self._clock() + self._every_s, True
        metrics = self._collect()
        if metrics is not None and metrics.resource_metrics:
            with quiet(*_LOGGERS), time_limit(self._timeout_s):
                result = self._exporter.export(metrics)  # pyright: ignore[reportUnknownMemberType] - unannotated **kwargs
            if result is not MetricExportResult.SUCCESS:
                raise _failure(self._protocol)
            if count := _rejected(ExportMetricsServiceResponse, "rejected_data_points"):
                raise DeliveryError(f"{_COLLECTOR} rejected {count} data points")
        self.is_behind = self.has_failed = False

    def close(self) -> None:
        """Let go of the connection."""
        STREAMS.release(self._stream)
        with quiet(*_LOGGERS):
            self._exporter.shutdown()  # pyright: ignore[reportUnknownMemberType] - see above


def _rejected(answer: Any, field: str) -> int:
    """Return the number in a partial success, whose text may quote what was sent."""
    try:
        partial = answer.FromString(answered_body()).partial_success
    except DecodeError:  # of something that speaks no OTLP: nothing is known of a part
        return 0
    return max(0, int(getattr(partial, field)))


def _failure(spoken: str) -> DeliveryError:
    if spoken != GRPC:
        return failure(_COLLECTOR)
    # The exporter keeps the status to itself; but it is an argument of what it logs.
    name = next((each.name for each in reversed(suppressed_args()) if isinstance(each, Enum)), None)
    if name is None:
        return DeliveryError(f"{_COLLECTOR} did not take the batch")
    too_large = any(
        "larger than max" in each for each in suppressed_args() if isinstance(each, str)
    )
    if name == "INVALID_ARGUMENT" or too_large:
        return UnacceptableError(f"{_COLLECTOR} refused the batch: {name}")
    _status, after_s = answered()
    return UnavailableError(f"{_COLLECTOR} answered {name}", after_s)


def _span_exporter(timeout: float) -> SpanExporter:
    # Imported one by one: grpc alone costs 60 ms, and hosts often block it or lack it.
    if protocol("TRACES") == GRPC:
        from .grpc import GrpcSpanExporter  # noqa: PLC0415

        return GrpcSpanExporter(timeout=timeout)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter as OverHttp,
    )

    return OverHttp(timeout=timeout, session=BoundedSession())


def sender_of(exporter: SpanExporter) -> Callable[[bytes], SpanExportResult] | None:
    """Return a function that sends an encoded request, or None if the exporter cannot."""
    send = getattr(exporter, "send", None)
    if send is not None:
        return cast("Callable[[bytes], SpanExportResult]", send)
    export = getattr(getattr(exporter, "_client", None), "export", None)
    if export is None:
        return None
    success, failure = SpanExportResult.SUCCESS, SpanExportResult.FAILURE
    return lambda request: success if export(request).success else failure


def _metric_exporter(timeout: float) -> MetricExporter:
    if protocol("METRICS") == GRPC:
        from .grpc import GrpcMetricExporter  # noqa: PLC0415

        return GrpcMetricExporter(timeout=timeout)
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415
        OTLPMetricExporter as OverHttp,
    )

    return OverHttp(timeout=timeout, session=BoundedSession())


def _preferences(exporter: MetricExporter) -> dict[str, Any]:
    # Private by name, but the only way to ask: the SDK's own periodic reader does the same.
    return {
        "preferred_temporality": getattr(exporter, "_preferred_temporality", None),
        "preferred_aggregation": getattr(exporter, "_preferred_aggregation", None),
    }
