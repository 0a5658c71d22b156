"""Figures that are read when Prometheus asks."""

from __future__ import annotations

import gc
from collections.abc import Iterable

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families

from mnemoscope.memory.api import Sample
from mnemoscope.telemetry.prometheus.live import LiveCollector


@pytest.fixture
def registry():
    return CollectorRegistry()


def scraped(registry):
    """Return every sample of a scrape by name and labels, as Prometheus would see it."""
    text = generate_latest(registry).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(registry, name, **labels):
    """Return one sample's value, or None."""
    return scraped(registry).get((f"mnemoscope_{name}", tuple(sorted(labels.items()))))


class Scope:
    """Something with live figures."""

    def __init__(self, samples: Iterable[Sample] = (), error: Exception | None = None):
        self.samples = samples
        self.error = error

    def read(self):
        if self.error:
            raise self.error
        return self.samples


def in_flight(count, store="mem0"):
    return Sample(
        name="mnemoscope_operations_in_flight", value=count, labels={"store": store}, help="Now"
    )


class TestLive:
    def test_figures_are_read_at_the_scrape(self, registry):
        """A gauge shows what is true when Prometheus asks."""
        scope = Scope([in_flight(2)])
        LiveCollector.for_registry(registry).add(scope.read)
        scope.samples = [in_flight(5)]

        assert value(registry, "operations_in_flight", store="mem0") == 5

    def test_scopes_add_up_or_show_the_worst(self, registry):
        """Two scopes' calls in flight are summed; of two breakers the more open one shows."""
        breaker = {"name": "mnemoscope_breaker_state", "merge": "max", "labels": {"store": "mem0"}}
        scopes = [Scope([in_flight(n), Sample(value=n, **breaker)]) for n in (1, 2)]
        for scope in scopes:
            LiveCollector.for_registry(registry).add(scope.read)

        assert value(registry, "operations_in_flight", store="mem0") == 3
        assert value(registry, "breaker_state", store="mem0") == 2

    def test_counters_are_exposed_as_counters(self, registry):
        """A sample of kind counter keeps its ``_total`` and its type in both formats."""
        sample = Sample(name="mnemoscope_sink_dropped_total", value=7, kind="counter", help="Lost")
        scope = Scope([sample])
        LiveCollector.for_registry(registry).add(scope.read)

        families = {
            family.name: family
            for family in parse_openmetrics(openmetrics.generate_latest(registry).decode())
        }
        assert families["mnemoscope_sink_dropped"].type == "counter"
        assert value(registry, "sink_dropped_total") == 7

    def test_a_scope_that_is_gone_is_not_kept_alive(self, registry):
        """The collector holds scopes weakly."""
        scope = Scope([in_flight(1)])
        LiveCollector.for_registry(registry).add(scope.read)
        del scope
        gc.collect()

        assert value(registry, "operations_in_flight", store="mem0") is None

    def test_a_failing_scope_costs_only_its_own_figures(self, registry):
        """The host's scrape goes on, and the failure is counted."""
        good, bad = Scope([in_flight(1)]), Scope(error=RuntimeError("ada@example.com"))
        LiveCollector.for_registry(registry).add(bad.read)
        LiveCollector.for_registry(registry).add(good.read)

        found = scraped(registry)
        assert found["mnemoscope_operations_in_flight", (("store", "mem0"),)] == 1
        assert found["mnemoscope_live_read_errors_total", ()] == 1

    def test_many_series_of_one_metric_hide_no_other(self, registry):
        """An application with thousands of stores still sees what its sinks lost."""
        lost = Sample(name="mnemoscope_sink_dropped_total", value=7, kind="counter", help="Lost")
        scope = Scope([*(in_flight(1, f"store {number}") for number in range(20_000)), lost])
        LiveCollector.for_registry(registry).add(scope.read)

        assert value(registry, "sink_dropped_total") == 7
        assert len(scraped(registry)) < 3_000

    def test_registering_reads_nothing(self):
        """The default registry describes collectors; ours must not be run for that."""
        registry = CollectorRegistry(auto_describe=True)
        scope = Scope(error=AssertionError("read too early"))
        LiveCollector.for_registry(registry).add(scope.read)

        assert LiveCollector.for_registry(registry) is LiveCollector.for_registry(registry)
