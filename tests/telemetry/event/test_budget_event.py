"""A budget that went past a level, and a loop that comes back, as each sink tells of them."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from mnemoscope.telemetry.event.budget_event import BudgetEvent
from mnemoscope.telemetry.event.event import OperationClass
from mnemoscope.telemetry.event.kinds import Level
from mnemoscope.telemetry.event.node_run import NodeRun
from mnemoscope.telemetry.langsmith.runs import runs_of
from mnemoscope.telemetry.logs.sink import is_ordinary, sentence
from mnemoscope.telemetry.otlp.conventions.attributes import span_attributes
from mnemoscope.telemetry.prometheus.sink import PrometheusSink
from tests.kit.log_lines import logged


@pytest.fixture
def alert(event_factory):
    """A budget of five dollars that went past its alert level."""
    crossing = BudgetEvent(
        budget="reply per hour",
        level=Level.ALERT,
        unit="usd",
        spent=3.8,
        limit=5.0,
        period_s=3_600.0,
        burn_per_hour=22.5,
    )
    return event_factory(
        operation="budget_alert",
        op_class=OperationClass.MODEL,
        store="budget",
        method="alert",
        duration_s=0.0,
        customer=None,
        parts=(crossing,),
    )


@pytest.fixture
def node(event_factory):
    """The third run of a node in a run of its graph."""
    return event_factory(
        operation="execute_node",
        op_class=OperationClass.MODEL,
        store="langgraph.node",
        method="think",
        parts=(NodeRun(3, 0.25),),
    )


def test_a_log_line_says_it_and_is_a_warning(alert):
    """In a sentence for a person, and field by field."""
    (line,) = logged([alert])

    assert not is_ordinary(alert)
    assert line["level"] == "WARNING"
    assert line["message"] == sentence(alert)
    assert line["message"] == (
        "budget reply per hour is past its alert level: $3.80 of $5.00, $22.50 an hour at this pace"
    )
    assert (line["budget"], line["budget_level"], line["budget_spent"]) == (
        "reply per hour",
        "alert",
        3.8,
    )


def test_a_span_has_the_amounts(alert):
    """Under names of our own: no convention has a word for budgets yet."""
    found = span_attributes(alert)

    assert found["mnemoscope.budget.name"] == "reply per hour"
    assert found["mnemoscope.budget.level"] == "alert"
    assert (found["mnemoscope.budget.spent"], found["mnemoscope.budget.limit"]) == (3.8, 5.0)


def test_a_run_has_the_amounts(alert):
    """In its metadata."""
    (run,) = runs_of([alert], "project", content=False)

    assert run["extra"]["metadata"]["budget"] == "reply per hour"
    assert run["extra"]["metadata"]["budget_burn_per_hour"] == 22.5


def test_a_loop_is_seen_in_metrics(node):
    """Which run of the node it was, and what it cost, as distributions by node."""
    registry = CollectorRegistry()
    PrometheusSink(registry=registry).write([node])
    labels = {"node": "think"}

    assert registry.get_sample_value("mnemoscope_loop_iterations_sum", labels) == 3
    assert registry.get_sample_value("mnemoscope_iteration_cost_usd_sum", labels) == 0.25


def test_a_loop_is_seen_in_spans_logs_and_runs(node):
    """Each run of the node says which it was."""
    (run,) = runs_of([node], "project", content=False)

    assert span_attributes(node)["mnemoscope.iteration"] == 3
    assert span_attributes(node)["mnemoscope.inner_cost_usd"] == 0.25
    assert run["extra"]["metadata"]["iteration"] == 3
