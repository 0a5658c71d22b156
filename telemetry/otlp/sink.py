"""
The OTLP sink: a span for each operation, and the metrics of the GenAI conventions.

Spans are built here, on the lane's thread, with the ids and times that `Event.trace` captured on
the caller's: the host's processors, sampler and exporters get spans as if they had been started
there, and spans of instrumented clients below are children of ours. Where the host has no SDK set
up, we export ourselves (`export`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..delivery.sink import DeliveryError, PartialError, SinkOutput
from ..event.event import Event
from ..event.trace import Tracing
from ..network.probe import is_this_machine
from ..process.faults import Faults
from ..process.fork import reset_after_fork
from ..process.late_imports import LATE_IMPORTS
from .conventions.attributes import SINK
from .host import host_meter_provider, host_tracer_provider, host_tracing
from .langfuse import langfuse_scores
from .metrics import Instruments, instruments_of
from .phases import with_phases
from .probe import collectors, reach
from .saved_variables import SavedVariables
from .settings import Signal, is_disabled, is_wanted, names_sampler, protocol, setting
from .spans import DeferredSpans

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import Sampler

    from .export import OwnMetrics, OwnTraces


class Exports:
    """
    The exports of a sink: to the host's providers, or our own.

    Args:
        host: The host's tracer provider, or None to export spans ourselves.
        host_metrics: The host's meter provider, or None to export metrics ourselves.
        resource: What to attribute our own exports to.
        content: Whether redacted content goes onto spans.

    Attributes:
        own_metrics: Our own metrics, where we export them.
    """

    def __init__(
        self,
        host: TracerProvider | None,
        host_metrics: MeterProvider | None,
        *,
        resource: Resource | None,
        content: bool,
    ) -> None:
        if resource is None and not (host and host_metrics):
            from .resource import resource_here  # noqa: PLC0415 - the SDK, as below

            resource = resource_here()
        self._own_traces = None if host else own_traces(resource, content=content)
        self.own_metrics = None if host_metrics else own_metrics(resource, alone=host is None)
        self._spans = DeferredSpans(host, content=content) if host else None
        self._instruments = self._measuring(host_metrics)
        self._measured: set[str] = set()
        self._scores = langfuse_scores() if self._own_traces else None

    def _measuring(self, host: MeterProvider | None) -> Instruments[Any] | None:
        if host is not None:
            return instruments_of(host)
        return self.own_metrics.instruments if self.own_metrics else None

    def measure(self, batch: Sequence[Event]) -> None:
        """Record the metrics of *batch*, once for each event: a failed batch comes again."""
        if self._instruments is None:
            return
        ids, record = [event.event_id for event in batch], self._instruments.record
        if self._measured.isdisjoint(ids):
            fresh = batch
        elif not (fresh := [e for e, i in zip(batch, ids, strict=True) if i not in self._measured]):
            return
        # Of the last batch alone: only that one can come again.
        self._measured = set(ids)
        for event in fresh:
            record(event)
        if self.own_metrics is not None:
            self.own_metrics.is_behind = True

    def write_spans(self, batch: Sequence[Event]) -> int:
        """
        Build the spans of *batch* through the host's provider, or export them ourselves.

        Returns:
            The number of spans that our own collector rejected.
        """
        rejected = 0
        batch = with_phases(batch)
        if self._spans is not None:
            for event in batch:
                self._spans.write(event)
        if self._own_traces is not None:
            rejected = self._own_traces.deliver(batch)
        if self._scores is not None:
            self._scores.send(batch)
        return rejected

    def close(self) -> None:
        """Close our own exports."""
        for own in (self._own_traces, self.own_metrics, self._scores):
            if own is not None:
                own.close()


def own_sampler() -> Sampler | None:
    """Return the sampler of our own export of spans by the environment. None: all are exported."""
    if not is_wanted("TRACES") or is_disabled():
        from opentelemetry.sdk.trace.sampling import ALWAYS_OFF  # noqa: PLC0415 - see below

        return ALWAYS_OFF
    if not names_sampler():
        return None
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - see below

    return TracerProvider(shutdown_on_exit=False).sampler


def own_traces(resource: Resource | None, *, content: bool) -> OwnTraces | None:
    """Return our own export of spans, unless the environment wants none."""
    if not is_wanted("TRACES"):
        return None
    from .export import OwnTraces  # noqa: PLC0415 - the SDK, only where the host has none

    return OwnTraces(resource, content=content)


def exports_metrics(*, alone: bool) -> bool:
    """
    Return whether metrics are ours to export, where the host has no provider for them.

    A host that has set up traces in code, and named no endpoint, has not asked for metrics.
    """
    return is_wanted("METRICS") and (alone or bool(setting("METRICS", "ENDPOINT")))


def own_metrics(resource: Resource | None, *, alone: bool) -> OwnMetrics | None:
    """Return our own export of metrics, unless nobody wants one."""
    if not exports_metrics(alone=alone):
        return None
    from .export import OwnMetrics  # noqa: PLC0415 - see above

    return OwnMetrics(resource)


class OtlpSink:
    """
    Spans and metrics, through the host's providers if there are any, else to a collector.

    Args:
        content: Put the redacted content on spans.
        resource: What to attribute to where the host has no provider. None: the environment's.
        provider: Instead of the host's global tracer provider.
        meter_provider: Instead of the host's global meter provider.

    Attributes:
        faults: Failed exports of metrics. They lose no event: the next export has the same sums.

    Raises:
        ValueError: The environment asks for a protocol that there is no exporter for.
    """

    name = SINK
    idempotent = True
    gathers_s = 0.5

    def __init__(
        self,
        *,
        content: bool = False,
        resource: Resource | None = None,
        provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        # The sink opens with the first event: the host may have changed its environment by then, as
        # pytest does.
        self._variables = SavedVariables()
        protocol("TRACES")
        # Here and not in the lane's thread: a mistake in the environment is to be told by
        # configure().
        protocol("METRICS")
        self.faults = Faults()
        self._content = content
        self._resource = resource
        self._provider = provider
        self._meter_provider = meter_provider
        self._out: Exports | None = None
        self._inherited: list[Exports] = []
        reset_after_fork(self)

    def tracing(self) -> Tracing:
        """Return the maker of trace ids that agree with the host's provider."""
        with self._variables.applied():
            return host_tracing(alone=own_sampler())

    def open_ahead(self) -> None:
        """Find the host's providers, or import and open exporters of our own."""
        self._opened()

    def write(self, batch: Sequence[Event], /) -> None:
        """Deliver the batch's spans, and its metrics if their interval is over."""
        out = self._opened()
        out.measure(batch)
        rejected = out.write_spans(batch)
        if out.own_metrics is not None and out.own_metrics.is_due:
            self._deliver_metrics(out.own_metrics)
        if rejected:
            raise PartialError(f"the OTLP collector rejected {rejected} spans", rejected)

    def flush(self, timeout_s: float, /) -> bool:
        """
        Export the metrics if their interval is over, or the last export failed. False: it failed.

        Spans never wait here. What the host's own processors hold is theirs to flush: doing it for
        them would hold this lane for as long as their exporter takes.
        """
        del timeout_s
        own = None if self._out is None else self._out.own_metrics
        if own is None or not (own.is_due or own.has_failed):
            return True
        return self._deliver_metrics(own)

    def rest(self) -> None:
        """Export the metrics: children that `multiprocessing` forks do not get to `close`."""
        if self._out is not None and (own := self._out.own_metrics) is not None and own.is_behind:
            self._deliver_metrics(own)

    def leave(self) -> None:
        """Keep nothing: spans that are under way may arrive."""

    def check(self, timeout_s: float, /) -> str:
        """Find out whether the collector can be reached, where it is ours to reach."""
        host = self._provider or host_tracer_provider()
        host_metrics = self._meter_provider or host_meter_provider()
        own: list[Signal] = []
        with self._variables.applied():
            if host is None and is_wanted("TRACES"):
                own.append("TRACES")
            if host_metrics is None and exports_metrics(alone=host is None):
                own.append("METRICS")
            addresses = collectors(own)
        if addresses:
            return reach(addresses, timeout_s)
        if host or host_metrics:
            return "goes through your application's OpenTelemetry SDK"
        return "is switched off by OTEL_TRACES_EXPORTER and OTEL_METRICS_EXPORTER"

    def output(self) -> SinkOutput:
        """Return what leaves through this sink."""
        hosted = self._provider or host_tracer_provider()
        kind = "the application's OpenTelemetry" if hosted else self._collector()
        return SinkOutput(kind, self._content, part="sampled")

    def _collector(self) -> str:
        try:
            with self._variables.applied():
                addresses = collectors(["TRACES"])
        except DeliveryError:
            return "collector"
        local = all(is_this_machine(host) for host, _port in addresses)
        return "collector on this machine, which may pass it on" if local else "collector"

    def close(self, timeout_s: float, /) -> None:
        """Export what metrics lack, and close the connections. The host's are left alone."""
        out, self._out = self._out, None
        if out is None:
            return
        if (own := out.own_metrics) is not None and own.is_behind and timeout_s > 0:
            self._deliver_metrics(own)
        out.close()

    def forked(self) -> None:
        """Begin anew in a forked child: connections carried over belong to the parent."""
        if self._out is not None:
            # Kept, not dropped: collecting a gRPC channel would close the parent's connection.
            self._inherited.append(self._out)
        self._out = None

    def _deliver_metrics(self, own: OwnMetrics) -> bool:
        try:
            own.deliver()
        except Exception as exc:  # noqa: BLE001 - an exporter may fail in any way
            self.faults.note("sink.otlp.metrics", exc)
            return False
        return True

    def _opened(self) -> Exports:
        if self._out is None:
            with self._variables.applied(), LATE_IMPORTS:
                self._out = Exports(
                    self._provider or host_tracer_provider(),
                    self._meter_provider or host_meter_provider(),
                    resource=self._resource,
                    content=self._content,
                )
        return self._out
