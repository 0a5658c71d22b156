"""
The series of every metric of both sinks, fed with hostile values for all that comes from outside.

Nothing is listed by hand: each field of an event that holds text is given many values, and every
instrument that has measured anything is looked at.
"""

from __future__ import annotations

import random
from collections import Counter
from enum import Enum
from functools import cache
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry

from mnemoscope.telemetry.event.event import Event
from mnemoscope.telemetry.event.node_run import NodeRun
from mnemoscope.telemetry.event.usage import Usage
from mnemoscope.telemetry.event.verdict_event import Outcome, Point, VerdictEvent
from mnemoscope.telemetry.otlp.histograms import OwnHistograms
from mnemoscope.telemetry.otlp.metrics import instruments_of
from mnemoscope.telemetry.prometheus.sink import PrometheusSink

EVENTS = 12_000
MOST = 2_000
"""Series of one metric: where the SDK drops what comes, and Prometheus gets slow."""

FIRST = "the first store"
MADE: list[Event] = []
MEASURED = {"hits": 1, "top_score": 0.5, "foreign_hits": 1}


def any_of(chosen: random.Random, kind: Any, values: int) -> Any:
    """Return a value of *kind*: text is hostile, of what is closed any member."""
    kinds = get_args(kind) or (kind,)
    if str in kinds:
        odd = chosen.choice(("", "\x00", "\u202e", "\ud800", "x" * 300))
        return f"{odd}{chosen.randrange(values)}"
    for each in kinds:
        if isinstance(each, type) and issubclass(each, Enum):
            return chosen.choice([*each])
    return chosen.random() < 0.5 if bool in kinds else None


hints_of = cache(get_type_hints)


def hostile(chosen: random.Random, kind: type[msgspec.Struct], values: int) -> dict[str, Any]:
    """Return values for the fields of *kind* that are text, closed or a flag."""
    hints = hints_of(kind)
    found = {name: any_of(chosen, hints[name], values) for name in kind.__struct_fields__}
    return {name: value for name, value in found.items() if value is not None}


@pytest.fixture
def events(event_factory) -> list[Event]:
    """Return events of one store as they are, and then many that are hostile: made once."""
    if MADE:
        return MADE
    chosen = random.Random(11)  # noqa: S311 - the same events in every run
    made = MADE
    made.append(event_factory(store=FIRST, operation="search_memory", error="ValueError"))
    usage = Usage(model="m")
    verdict = VerdictEvent(
        rule="r",
        kind="k",
        point=Point.MEMORY,
        outcome=Outcome.ALLOW,
        reason="",
        evidence={},
        settings="",
        facts="",
    )
    for number in range(EVENTS):
        values = (
            18 if number < EVENTS * 3 // 4 else 700
        )  # below what each label may have, then above
        given = hostile(chosen, Event, values)
        parts = (NodeRun(2, 0.1),)
        if chosen.random() < 0.5:
            used = msgspec.structs.replace(
                usage,
                **hostile(chosen, Usage, values),
                input_tokens=1,
                cost_usd=0.1,
                time_to_first_token_s=0.1,
            )
            parts += (used,)
        if chosen.random() < 0.2:
            said = msgspec.structs.replace(verdict, **hostile(chosen, VerdictEvent, values))
            parts += (said,)
        given["redactions"] = {f"ENTITY_{chosen.randrange(700)}": 1}
        made.append(event_factory(**given | MEASURED | {"parts": parts}))
    made.append(made[0])
    return made


def test_series_in_prometheus_are_bounded(events):
    """For every metric that there is, and each class where a metric tells them apart."""
    registry = CollectorRegistry()
    PrometheusSink(registry=registry).write(events)
    series = Counter(
        (metric.name, sample.name, sample.labels.get("class"), sample.labels.get("le"))
        for metric in registry.collect()
        for sample in metric.samples
    )

    assert len({name for name, *_rest in series}) >= 19
    assert {name: count for name, count in series.items() if count > MOST + 200} == {}


@pytest.mark.parametrize("by", ["the SDK", "histograms of ours"])
def test_series_in_otlp_are_bounded(events, by):
    """Below what the SDK and a collector take; none stands for what was dropped."""
    if by == "the SDK":
        reader = InMemoryMetricReader()
        instruments: Any = instruments_of(MeterProvider([reader]))
        collect = reader.get_metrics_data
    else:
        own = OwnHistograms()
        instruments, collect = own.instruments, own.collect
    for each in events:
        instruments.record(each)
    (of_resource,) = collect().resource_metrics
    metrics = of_resource.scope_metrics[0].metrics

    assert len(metrics) >= 3
    for metric in metrics:
        points = [dict(each.attributes) for each in metric.data.data_points]
        assert len(points) < MOST
        assert not any("otel.metric.overflow" in each for each in points)


def test_no_error_of_one_store_hides_another(events):
    """Whatever came in between: it is measured under its own name."""
    own = OwnHistograms()
    for each in events:
        own.instruments.record(each)
    (duration, *_others) = own.collect().resource_metrics[0].scope_metrics[0].metrics
    counts = [
        each.count
        for each in duration.data.data_points
        if each.attributes.get("mnemoscope.store") == FIRST
    ]

    assert sum(counts) == 2
