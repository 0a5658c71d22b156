"""
The metric objects of a registry, with every label set bounded.

Statuses and token types are closed. The first so many values of any other label get series of their
own and the rest share ``other``; so does every combination beyond a metric's own limit, since five
bounded labels still multiply. No label holds a tenant, customer, run or id.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from ..event.kinds import OperationClass
from ..process.fork_lock import ForkLock
from ..text import clean_text
from .durations import RUN_BUCKETS_S, STORE_BUCKETS_S, ByClass, buckets_s

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Histogram
    from prometheus_client.metrics import MetricWrapperBase

RESULT_BUCKETS = (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1_000.0)
ITERATION_BUCKETS = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1_000.0)
COST_BUCKETS_USD = (*(1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3), 1.0, 3.0, 10.0, 100.0)
SCORE_BUCKETS = (*(tenth / 10 for tenth in range(11)), 2.0, 5.0, 10.0, 100.0)

OTHER = "other"
NONE = "none"
_LABEL_LENGTH = 80
_LABEL_VALUES = {
    "agent": 100,
    "store": 50,
    "operation": 100,
    "entity": 100,
    "rule": 100,
    "part": 50,
    "measurement": 100,
    "model": 100,
    "node": 200,
}
_SERIES = 2_000

M = TypeVar("M", bound="MetricWrapperBase")


class Cap:
    """
    Caps the values of one label: the first ones stay, later ones become ``other``.

    Args:
        size: Values that get series of their own.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._labels: dict[str | None, str] = {}

    def label(self, value: str | None) -> str:
        """Return the label that stands for *value*."""
        found = self._labels.get(value)
        if found is not None:
            return found
        if len(self._labels) >= self.size:
            return OTHER
        label = clean_text(value[:_LABEL_LENGTH]) if value else NONE
        self._labels[value] = label
        return label


class Family(Generic[M]):
    """
    The series of one metric, found by raw label values.

    Args:
        caps: One per label; None where the values are closed anyway.
    """

    def __init__(self, metric: M, caps: Sequence[Cap | None]) -> None:
        self._metric = metric
        self._caps = tuple(caps)
        self._children: dict[tuple[str, ...], M] = {}
        self._found: dict[tuple[str | None, ...], M] = {}

    def series(self, *values: str | None) -> M:
        """Return the series of *values*, or the one of all others."""
        return self._found.get(values) or self._find(values)

    def _find(self, values: tuple[str | None, ...]) -> M:
        labels = tuple(
            cap.label(value) if cap else str(value)
            for cap, value in zip(self._caps, values, strict=True)
        )
        child = self._children.get(labels) or self._new(labels)
        # What stands for others may get a series of its own once there is room for more.
        if OTHER not in labels and len(self._found) < _SERIES:
            self._found[values] = child
        return child

    def _new(self, labels: tuple[str, ...]) -> M:
        if len(self._children) >= _SERIES:
            pairs = zip(self._caps, labels, strict=True)
            labels = tuple(OTHER if cap else label for cap, label in pairs)
        child = self._metric.labels(*labels)
        self._children[labels] = child
        return child


class Metrics:
    """The metric objects of one registry: made once, shared by all sinks on it."""

    def __init__(self, registry: CollectorRegistry, top_features: int) -> None:
        self._registry = registry
        self.caps = {name: Cap(size) for name, size in _LABEL_VALUES.items()}
        self.caps["feature"] = Cap(top_features)
        self.guard = ForkLock()
        self._register_operations()
        self._register_losses()
        self._register_spend()
        self._register_agents()
        del self._registry  # the map below must not keep its own keys alive

    def _register_operations(self) -> None:
        self.duration = self._durations(
            "operation_duration_seconds",
            "Seconds the caller waited for a memory store or model",
            ("store", "class", "operation", "status"),
        )
        self.errors = self._counter(
            "errors_total",
            "Operations that were not answered, by why: a closed set",
            ("store", "operation", "error"),
        )
        self.nested_seconds = self._counter(
            "nested_seconds_total",
            "Seconds inside another operation, which counted them already",
            ("store",),
        )
        self.own_seconds = self._counter(
            "own_seconds_total",
            "Seconds of operations, without those of the operations inside them",
            ("store",),
        )
        self.waited = self._histogram(
            "operation_waited_seconds",
            "Seconds before the store was called: tenancy, redaction, queueing",
            ("store",),
            STORE_BUCKETS_S,
        )
        self.results = self._histogram(
            "recall_results", "Results of an answered recall", ("store",), RESULT_BUCKETS
        )
        self.top_score = self._histogram(
            "recall_top_score",
            "Score of a recall's first result, in the store's own measure",
            ("store",),
            SCORE_BUCKETS,
        )

    def _register_losses(self) -> None:
        self.redactions = self._counter(
            "redactions_total", "Personal data replaced before the store", ("entity",)
        )
        self.refused = self._counter(
            "writes_refused_total", "Writes refused: they could not be redacted", ("store",)
        )
        self.lost = self._counter(
            "writes_lost_total", "Writes the store did not take while failing open", ("store",)
        )
        self.journalled = self._counter(
            "journal_writes_total",
            "Writes that were put into the journal, and that reached their store from there",
            ("store", "outcome"),
        )
        self.tripwire = self._counter(
            "tenant_tripwire_total", "Results that belong to somebody else", ("store",)
        )
        self.verdicts = self._counter(
            "verdicts_total",
            "Decisions of rules that are no plain allow; in shadow, would is what had been decided",
            ("rule", "point", "outcome", "would"),
        )

        self.parts = self._counter(
            "event_part_total",
            "Sums of what features of other packages measure, by the part of the event and name",
            ("part", "measurement"),
        )

    def _register_spend(self) -> None:
        self.tokens = self._counter(
            "tokens_total",
            "Tokens; input includes cached, output includes reasoning",
            ("model", "feature", "node", "type"),
        )
        self.cost = self._counter(
            "cost_usd_total", "Cost by the price table, US dollars", ("model", "feature")
        )
        self.unpriced = self._counter(
            "unpriced_tokens_total", "Tokens of models the price table does not know", ("model",)
        )
        self.unreported = self._counter(
            "unreported_calls_total", "Model calls whose provider kept their usage", ("model",)
        )
        self.first_token = self._histogram(
            "time_to_first_token_seconds",
            "Seconds to a model's first chunk",
            ("model",),
            RUN_BUCKETS_S,
        )
        self.iterations = self._histogram(
            "loop_iterations",
            "Which run of the node it was within one run of its graph, for each that ended",
            ("node",),
            ITERATION_BUCKETS,
        )
        self.iteration_cost = self._histogram(
            "iteration_cost_usd",
            "What the model calls in one run of the node cost, US dollars",
            ("node",),
            COST_BUCKETS_USD,
        )
        self.node = self._histogram(
            "node_duration_seconds",
            "Seconds one run of a graph's node took",
            ("node",),
            RUN_BUCKETS_S,
        )

    def _register_agents(self) -> None:
        self.agent_duration = self._durations(
            "agent_duration_seconds",
            "Seconds of the operations and model calls of each agent, without graphs and nodes",
            ("agent", "class"),
        )
        self.agent_tokens = self._counter(
            "agent_tokens_total", "Input and output tokens of each agent", ("agent",)
        )
        self.agent_cost = self._counter(
            "agent_cost_usd_total", "Cost of each agent by the price table, US dollars", ("agent",)
        )

    def _durations(
        self, name: str, text: str, labels: tuple[str, ...]
    ) -> dict[OperationClass, Family[Histogram]]:
        from prometheus_client import Histogram  # noqa: PLC0415 - a disabled library imports nothing

        def histogram(buckets: Sequence[float]) -> Histogram:
            return Histogram(f"mnemoscope_{name}", text, labels, registry=None, buckets=buckets)

        of = {buckets: histogram(buckets) for buckets in (STORE_BUCKETS_S, RUN_BUCKETS_S)}
        histograms = {each: of[buckets_s(each)] for each in OperationClass}
        ByClass(histograms, self._registry)
        caps = [self.caps.get(label) for label in labels]
        families = {each: Family(each, caps) for each in of.values()}
        return {each: families[histogram] for each, histogram in histograms.items()}

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> Family[Counter]:
        from prometheus_client import Counter  # noqa: PLC0415 - a disabled library imports nothing

        metric = Counter(f"mnemoscope_{name}", text, labels, registry=self._registry)
        return Family(metric, [self.caps.get(label) for label in labels])

    def _histogram(
        self, name: str, text: str, labels: tuple[str, ...], buckets: Sequence[float]
    ) -> Family[Histogram]:
        from prometheus_client import Histogram  # noqa: PLC0415

        metric = Histogram(
            f"mnemoscope_{name}", text, labels, registry=self._registry, buckets=buckets
        )
        return Family(metric, [self.caps.get(label) for label in labels])


_metrics: weakref.WeakKeyDictionary[CollectorRegistry, Metrics] = weakref.WeakKeyDictionary()
_making = ForkLock()


def metrics_of(registry: CollectorRegistry, top_features: int) -> Metrics:
    """Return the metrics of *registry*, made at the first call."""
    with _making:
        metrics = _metrics.get(registry)
        if metrics is None:
            metrics = _metrics[registry] = Metrics(registry, top_features)
        cap = metrics.caps["feature"]
        cap.size = max(cap.size, top_features)
        return metrics
