"""A run that another process resumes goes on with the facts that it had."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from mnemoscope.adapters.langgraph.checkpoint.facts import KEY
from mnemoscope.adapters.langgraph.runs.gate import gate
from mnemoscope.memory import Outcome, Point, Stopping
from mnemoscope.memory.testing import scope_for_tests

CONFIG: Any = {"configurable": {"thread_id": "t-1"}}
RULE = Stopping(max_cost_usd=None, patience=None, timeout_s=None)


class State(TypedDict):
    said: Annotated[list[Any], operator.add]


class Seen:
    """A rule that notes what it is shown."""

    name, shadow = "seen", False
    points, fails = frozenset({Point.MODEL}), RULE.fails

    def __init__(self):
        self.facts = []

    def settings(self):
        return {}

    def decide(self, facts):
        self.facts.append(facts)
        return RULE.decide(facts)


@pytest.fixture(autouse=True)
def nobody_asked():
    """Begin and end with a gate that watches nothing: a failed test keeps its objects alive."""
    gate().clear()
    yield
    gate().clear()


def run_in_a_process(saver, given, **settings):
    """Run a graph to its interrupt, or on from there, in a scope of its own; return the facts."""
    seen, model = Seen(), FakeListChatModel(responses=["hi"])

    def ask(_state):
        return {"said": [model.invoke("x").content]}

    def wait(_state):
        return {"said": [interrupt("go on?"), model.invoke("x").content]}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("wait", wait)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "wait")
    with scope_for_tests(rules=[seen], **settings) as (scope, _sink):
        graph = scope.runnable(builder.compile(checkpointer=scope.checkpointer(saver)))
        graph.invoke(given, CONFIG)
        faults = dict(scope._parts.faults.counts)
    return seen.facts, faults


def test_a_resumed_run_goes_on_counting():
    """The second process knows the model call of the first; time while it waited is left out."""
    saver = InMemorySaver()

    begun, _faults = run_in_a_process(saver, {"said": []})
    resumed, faults = run_in_a_process(saver, Command(resume="yes"))

    assert [each.model_calls for each in begun] == [0]
    assert [each.model_calls for each in resumed] == [1]
    assert all(each.is_whole for each in resumed)
    assert all(each.node_ends for each in resumed)
    assert faults == {}


def test_a_new_input_counts_from_nothing():
    """Although the thread's last checkpoint has the facts of an earlier run."""
    saver = InMemorySaver()

    run_in_a_process(saver, {"said": []})
    anew, _faults = run_in_a_process(saver, {"said": []})

    assert [each.model_calls for each in anew] == [0]


@pytest.mark.parametrize("how", ["changed", "another key", "gone"])
def test_facts_that_cannot_be_believed_are_not_known(how):
    """The run goes on, and its facts say that they are not the whole of it."""
    saver, settings = InMemorySaver(), {}
    run_in_a_process(saver, {"said": []})
    if how == "another key":
        settings = {"audit_pseudonym_key": "cd" * 32}
    else:
        saver.storage["t-1"][""] = {
            name: (kept[0], saver.serde.dumps_typed(_without(saver, kept[1], how)), kept[2])
            for name, kept in saver.storage["t-1"][""].items()
        }

    resumed, faults = run_in_a_process(saver, Command(resume="yes"), **settings)

    assert [(each.model_calls, each.is_whole) for each in resumed] == [(0, False)]
    assert ("rules.restore" in faults) == (how != "gone")


def _without(saver, stored, how):
    metadata = saver.serde.loads_typed(stored)
    carried = metadata.pop(KEY, None)
    if carried and how == "changed":
        metadata[KEY] = carried.replace("model_calls", "model_kalls")
    return metadata


def test_the_facts_in_a_checkpoint_hold_no_content():
    """Neither the thread's name nor what was said."""
    saver = InMemorySaver()
    run_in_a_process(saver, {"said": ["a secret"]})
    carried = saver.get_tuple(CONFIG).metadata[KEY]

    assert "secret" not in carried
    assert "t-1" not in carried
    assert "model_calls" in carried
    assert Outcome.STOP not in carried
