"""The live metrics of a scope: calls in flight, breakers, queues, and what features show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ...telemetry.otlp.span_counts import SpanCounts
from ...telemetry.prometheus.live import LiveMetric, Sample, counter, latest
from ...telemetry.prometheus.own_figures import of_faults, of_lanes
from ..guard_factory import GuardFactory
from ..limits.breaker import BreakerState

if TYPE_CHECKING:
    from ..guard.guard import Guard

_STATE_VALUE = {BreakerState.CLOSED: 0.0, BreakerState.HALF_OPEN: 1.0, BreakerState.OPEN: 2.0}

_OPERATIONS_IN_FLIGHT = LiveMetric(
    "mnemoscope_operations_in_flight", "Calls inside a store now, the hung ones included"
)
_BREAKER_STATE = latest(
    "mnemoscope_breaker_state", "0 closed, 1 half open, 2 open: the store is not asked"
)
_LATE_RESULTS = counter(
    "mnemoscope_late_results_total", "Calls that ended after their caller had gone"
)
_CONFLICTS = counter(
    "mnemoscope_checkpoint_conflicts_total",
    "Threads that somebody else changed while writes to them waited in this process",
)

_REDACTED_SPANS = counter(
    "mnemoscope_redacted_spans_total",
    "Spans of the application's own exporters, by what redaction made of them",
)


class LiveMetrics:
    """
    Reads the live metrics of one scope at a scrape.

    Args:
        guards: Its guards are read one by one, and its drain.
        spans: Counts of the spans that redacting exporters saw.
        others: Return the samples of features.
    """

    def __init__(
        self,
        guards: GuardFactory,
        spans: SpanCounts | None = None,
        others: Sequence[Callable[[], Iterable[Sample]]] = (),
    ) -> None:
        self._guards = guards
        self._others = others
        self._spans = spans

    def read(self) -> Iterator[Sample]:
        """Yield all samples of the scope."""
        for guard in list(self._guards.guards):
            yield from _of_guard(guard)
        yield from of_lanes(self._guards.drain.stats())
        for samples in self._others:
            try:
                yield from [*samples()]
            except Exception as exc:  # noqa: BLE001 - costs a scrape what that feature shows
                self._guards.faults.note("feature.samples", exc)
        yield from of_faults(self._guards.faults)
        if self._spans is not None and self._spans.exporters:
            for outcome, count in self._spans.by_outcome().items():
                yield _REDACTED_SPANS.sample(count, outcome=outcome.value)


def _of_guard(guard: Guard) -> Iterator[Sample]:
    for op_class, limits in guard.limits.items():
        labels = {"store": guard.store, "class": op_class.value}
        yield _OPERATIONS_IN_FLIGHT.sample(limits.bulkhead.in_flight, **labels)
        yield _BREAKER_STATE.sample(_STATE_VALUE[limits.breaker.state], **labels)
    yield _LATE_RESULTS.sample(guard.deadline.late_results, store=guard.store)
    for step in guard.waiting:
        yield _CONFLICTS.sample(step.conflicts, store=guard.store)
