"""
Events as Prometheus metrics, in the host's own registry.

Nothing is counted twice, although mem0 may call a Qdrant that is guarded too. Each operation is
observed once, under its own store, so that blame falls on the store that was slow; the seconds of
those that ran inside another are counted once more in ``mnemoscope_nested_seconds_total``, so that
what agents waited in all is the sum of durations less that counter, and blame is a matter of
``mnemoscope_own_seconds_total``, which leaves out what ran inside. A replacement, a token and a
refused write happen in one operation only, so counters of those add up as they are.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..delivery.sink import SinkOutput
from ..event.error_kinds import error_kind
from ..event.event import Event, Journalled, OperationClass, Status
from ..event.node_run import NodeRun
from ..event.self_time import SelfTime
from ..event.trace_ref import TraceRef
from ..event.usage import Usage
from ..event.verdict_event import VerdictEvent
from .durations import buckets_s
from .live import LiveCollector, Read
from .metrics import Metrics, metrics_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from .server import MetricsServer

NODE_OPERATION = "execute_node"
"""Operation of the event that stands for one run of a graph's node; its `method` is the node."""

Exemplar: TypeAlias = dict[str, str]

_WRITES = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT})


class PrometheusSink:
    """
    Counts events in a `prometheus_client` registry, for the host to expose.

    Works under ``PROMETHEUS_MULTIPROC_DIR`` as far as that does: without exemplars, and without
    the live gauges unless this sink serves ``/metrics`` itself.

    Args:
        registry: Where the metrics live. None: prometheus_client's default registry.
        port: Serve ``/metrics`` here. None: the host does, or nobody; 0: a free one.
        top_features: Features that get series of their own.

    Raises:
        ValueError: The port is taken, or somebody else's metric has one of our names.
    """

    name = "prometheus"
    idempotent = False
    gathers_s = 0.5

    def __init__(
        self,
        *,
        registry: CollectorRegistry | None = None,
        port: int | None = None,
        host: str = "127.0.0.1",
        top_features: int = 200,
    ) -> None:
        from prometheus_client import REGISTRY  # noqa: PLC0415 - only where it is wanted

        chosen = REGISTRY if registry is None else registry
        self._registry = chosen
        self._metrics = metrics_of(chosen, top_features)
        self._self_time = SelfTime()
        self._server: MetricsServer | None = None
        if port is not None:
            from .server import MetricsServer, exposed  # noqa: PLC0415 - see above

            self._server = MetricsServer(exposed(chosen), host, port)

    @property
    def port(self) -> int | None:
        """The port of ``/metrics``, if this sink serves it."""
        return self._server.port if self._server else None

    def show(self, read: Read, /) -> None:
        """Call the bound method *read* at every scrape, as long as its object lives."""
        LiveCollector.for_registry(self._registry).add(read)

    def write(self, batch: Sequence[Event], /) -> None:
        """Count *batch*."""
        shown = _shown(batch)
        with self._metrics.guard:
            for event, own_s in zip(batch, self._self_time.self_seconds(batch), strict=True):
                if event.is_notice:
                    if (verdict := event.part(VerdictEvent)) is not None:
                        _count_verdict(self._metrics, verdict)
                    _count_parts(self._metrics, event)
                    continue  # no store was asked, and nobody waited
                exemplar = _exemplar(event.trace) if id(event) in shown else None
                _count(self._metrics, event, own_s, exemplar)

    def flush(self, _timeout_s: float, /) -> bool:
        """Return True: what is written is counted."""
        return True

    def check(self, timeout_s: float, /) -> str:
        """Find out whether ``/metrics`` is served, where that is ours to do."""
        if self._server is None:
            return "counts in the registry of prometheus_client, for your application to serve"
        self._server.check(timeout_s)
        return f"serves /metrics on {self._server.address}"

    def output(self) -> SinkOutput:
        """Return what leaves through this sink."""
        return SinkOutput("metrics", content=False, subject="none", part="sums")

    def close(self, timeout_s: float, /) -> None:
        """Stop serving. The metrics stay in the registry, where the host may still read them."""
        if self._server:
            self._server.close(timeout_s)


def _shown(batch: Sequence[Event]) -> set[int]:
    """
    Return the ``id()`` of each event of *batch* whose trace becomes an exemplar.

    A bucket shows one, that of its last observation, and to set it takes as long as to count.
    """
    last = {
        (_series(each), bisect_left(buckets_s(each.op_class), each.duration_s)): each
        for each in batch
        if each.trace.sampled and not (each.journal.is_afterwards or each.is_notice)
    }
    return set(map(id, last.values()))


def _series(event: Event) -> tuple[object, ...]:
    """Return the fields that select the series of an exemplar."""
    return event.store, event.op_class, event.operation, event.method, event.status, event.is_frame


def _exemplar(trace: TraceRef) -> Exemplar:
    return {"trace_id": trace.trace_hex, "span_id": trace.span_hex}


def _count(metrics: Metrics, event: Event, own_s: float, exemplar: Exemplar | None) -> None:
    if event.is_frame:
        _count_node(metrics, event, exemplar)
    if not event.journal.is_afterwards:  # nobody waited for it
        _count_time(metrics, event, exemplar)
        metrics.own_seconds.series(event.store).inc(own_s)
    _count_losses(metrics, event)
    for entity, replaced in event.redactions.items():
        metrics.redactions.series(entity).inc(replaced)
    if event.op_class is OperationClass.RECALL and event.status.is_normal:
        _count_recall(metrics, event)
    if event.parts:
        _count_parts(metrics, event)


def _count_parts(metrics: Metrics, event: Event) -> None:
    for part in event.parts:
        if isinstance(part, Usage):
            _count_usage(metrics, part, event.feature)
            if event.agent is not None:
                _count_agent(metrics, part, event.agent)
        for name, amount in part.measurements().items():
            if amount > 0:
                metrics.parts.series(part.name, name).inc(amount)


def _count_agent(metrics: Metrics, usage: Usage, agent: str) -> None:
    metrics.agent_tokens.series(agent).inc(max(0, usage.input_tokens + usage.output_tokens))
    if usage.cost_usd is not None and usage.cost_usd >= 0:
        metrics.agent_cost.series(agent).inc(usage.cost_usd)


def _count_verdict(metrics: Metrics, verdict: VerdictEvent) -> None:
    metrics.verdicts.series(
        verdict.rule, verdict.point, verdict.outcome, verdict.would or verdict.outcome
    ).inc()


def _count_time(metrics: Metrics, event: Event, exemplar: Exemplar | None) -> None:
    seconds = _seconds(event)
    metrics.duration[event.op_class].series(
        event.store, event.op_class, event.operation, event.status
    ).observe(seconds, exemplar)
    if (kind := error_kind(event)) is not None:
        metrics.errors.series(event.store, event.operation, kind).inc()
    if event.nested or event.is_frame:  # what a frame waited for is counted inside it
        metrics.nested_seconds.series(event.store).inc(seconds)
    if event.agent is not None and not event.is_frame:  # its own time, each second once
        agent = metrics.agent_duration[event.op_class]
        agent.series(event.agent, event.op_class).observe(seconds)
    if event.op_class is not OperationClass.MODEL and event.waited_s >= 0:
        metrics.waited.series(event.store).observe(event.waited_s)


def _count_node(metrics: Metrics, event: Event, exemplar: Exemplar | None) -> None:
    if event.operation == NODE_OPERATION:
        metrics.node.series(event.method).observe(_seconds(event), exemplar)
    if (run := event.part(NodeRun)) is None:
        return
    if run.iteration is not None:
        metrics.iterations.series(event.method).observe(run.iteration)
    if run.inner_cost_usd is not None and run.inner_cost_usd >= 0:
        metrics.iteration_cost.series(event.method).observe(run.inner_cost_usd)


def _seconds(event: Event) -> float:
    # Not max(0, x), which lets NaN through: one NaN would spoil a sum for good.
    return event.duration_s if event.duration_s >= 0 else 0.0


def _count_losses(metrics: Metrics, event: Event) -> None:
    if event.foreign_hits:
        metrics.tripwire.series(event.store).inc(event.foreign_hits)
    if event.op_class not in _WRITES:
        return
    if event.status is Status.REFUSED:
        metrics.refused.series(event.store).inc()
    elif event.journal is Journalled.LOST:
        metrics.lost.series(event.store).inc()
    elif event.journal:
        metrics.journalled.series(event.store, event.journal).inc()


def _count_recall(metrics: Metrics, event: Event) -> None:
    if event.hits is not None:
        metrics.results.series(event.store).observe(event.hits)
    if event.top_score is not None and math.isfinite(event.top_score):
        metrics.top_score.series(event.store).observe(event.top_score)


def _count_usage(metrics: Metrics, usage: Usage, feature: str | None) -> None:
    for kind, tokens in (
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("cached", usage.cached_tokens),
        ("cache_write", usage.cache_write_tokens),
        ("reasoning", usage.reasoning_tokens),
    ):
        if tokens > 0:
            metrics.tokens.series(usage.model, feature, usage.node, kind).inc(tokens)
    if not usage.reported:
        metrics.unreported.series(usage.model).inc()
    elif usage.cost_usd is None:
        metrics.unpriced.series(usage.model).inc(max(0, usage.input_tokens + usage.output_tokens))
    elif usage.cost_usd >= 0:
        metrics.cost.series(usage.model, feature).inc(usage.cost_usd)
    if usage.time_to_first_token_s is not None and usage.time_to_first_token_s >= 0:
        metrics.first_token.series(usage.model).observe(usage.time_to_first_token_s)
