"""The attributes of spans and metrics against the conventions' own lists: names, types, values."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.telemetry.otlp.conventions import semconv
from mnemoscope.telemetry.otlp.conventions.attributes import span_attributes
from mnemoscope.telemetry.otlp.histograms import OwnHistograms
from tests.kit.lengths import examples
from tests.kit.sample_events import events

CONVENTIONS = json.loads(Path(__file__).with_name("conventions.json").read_text("utf-8"))
TYPES = {"string": str, "int": int, "double": float, "boolean": bool, "any": str, "string[]": list}
"""What the conventions have of any type is JSON text on a span."""

OWN = "mnemoscope."
OWN_OPERATIONS = {
    "execute_node",  # a node of a graph is no agent, tool or workflow of its own
    "rerank",
    "search_vectors",
    "write_vectors",
    "keep_history",
    "read_memory_store",
    "update_memory_store",
    "budget_alert",
    "budget_exceeded",
    "audit_checkpoint",
    "load_checkpoint",
    "save_checkpoint",
    "delete_checkpoint",
}
"""Those that the conventions have no word for."""


def wrong(attributes):
    """Return the attributes that are neither ours nor as the conventions have them."""
    found = {}
    for name, value in attributes.items():
        known = CONVENTIONS["attributes"].get(re.sub(r"\.\d+(?=\.)", ".N", name))
        if name.startswith(OWN):
            continue
        if known is None or type(value) is not TYPES[known["type"]]:
            found[name] = type(value).__name__
    return found


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(event=events)
def test_every_attribute_of_a_span_is_ours_or_the_conventions(event):
    """By its name and by the type of its value."""
    assert wrong(span_attributes(event, content=True)) == {}


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(event=events)
def test_every_metric_and_its_attributes_are_ours_or_the_conventions(event):
    """And its unit."""
    own = OwnHistograms(about=((semconv.STREAM, 2),))
    own.instruments.record(event)
    collected = own.collect()
    metrics = collected.resource_metrics[0].scope_metrics[0].metrics if collected else ()

    for metric in metrics:
        assert CONVENTIONS["metrics"][metric.name] == metric.unit
        assert not any(wrong(point.attributes) for point in metric.data.data_points)


@pytest.mark.parametrize(
    ("operation", "method", "metric", "named"),
    [
        ("invoke_agent", "concierge", "gen_ai.invoke_agent.duration", "gen_ai.agent.name"),
        ("invoke_agent", "LangGraph", "gen_ai.invoke_agent.duration", None),
        ("execute_tool", "weather", "gen_ai.execute_tool.duration", "gen_ai.tool.name"),
    ],
)
def test_agents_and_tools_have_durations_of_their_own(make_event, operation, method, metric, named):
    """And are in that of clients' calls no more: who sums that would count each model twice."""
    own = OwnHistograms()
    frame = {"operation": operation, "op_class": OperationClass.MODEL, "method": method}
    own.instruments.record(make_event(**frame, status=Status.ERROR, error="ValueError"))
    (found,) = own.collect().resource_metrics[0].scope_metrics[0].metrics

    (point,) = found.data.data_points
    known = {**point.attributes}
    assert (found.name, found.unit) == (metric, "s")
    assert known.pop("error.type") == "ValueError"
    assert {name: value for name, value in known.items() if not name.startswith(OWN)} == (
        {named: method} if named else {}
    )


def test_names_that_are_not_ours_stand_in_the_conventions():
    """All that may be sent, whether an event has it or not."""
    names = {
        value
        for name, value in vars(semconv).items()
        if name.isupper() and isinstance(value, str) and not name.startswith("METRIC_")
    }

    assert {name for name in names if not name.startswith(OWN)} <= {*CONVENTIONS["attributes"]}


@pytest.mark.parametrize("attribute", CONVENTIONS["attributes"])
def test_each_name_in_the_list_has_its_source(attribute):
    """With the commit that it was read at, and its licence."""
    source = CONVENTIONS["sources"][CONVENTIONS["attributes"][attribute]["source"]]

    assert {"repository", "commit", "file", "licence"} == source.keys()


def test_providers_have_the_conventions_names():
    """LangChain and mem0 have others for some of them."""
    assert {*semconv.PROVIDERS.values()} <= {*CONVENTIONS["values"]["gen_ai.provider.name"]}
    assert not semconv.PROVIDERS.keys() & {*CONVENTIONS["values"]["gen_ai.provider.name"]}


def test_operations_of_adapters_have_the_conventions_names():
    """Or stand in the list of those that they have no word for."""
    from mnemoscope.adapters.langgraph.checkpoint import adapter as checkpoint
    from mnemoscope.adapters.langgraph.runs.spans import RunKind
    from mnemoscope.adapters.langgraph.store import adapter as store
    from mnemoscope.adapters.mem0 import methods as mem0
    from mnemoscope.adapters.qdrant import methods as qdrant
    from mnemoscope.memory.api import Method
    from mnemoscope.telemetry.otlp.phases import OPERATIONS

    rows = [
        row
        for module in (checkpoint, store, mem0, qdrant)
        for value in vars(module).values()
        for row in (value.values() if isinstance(value, dict) else [value])
    ]
    used = {row.operation for row in rows if isinstance(row, Method)}
    used |= {*OPERATIONS.values()} | {
        each.operation for each in RunKind if each is not RunKind.CHAIN
    }

    assert used - {*CONVENTIONS["values"]["gen_ai.operation.name"]} <= OWN_OPERATIONS
    assert "search_memory" in used
