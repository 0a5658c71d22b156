"""What is kept of runs that ended: enough for tasks that outlive them, and nobody's data."""

from __future__ import annotations

import gc
import weakref
from typing import TypedDict

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.graph import START, StateGraph

from mnemoscope.adapters.langgraph.runs.callbacks import graph_callbacks
from mnemoscope.memory import context
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S

MAIL = "ada@example.com"

pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")


class State(TypedDict, total=False):
    said: str


def graph_of(node):
    builder = StateGraph(State)
    builder.add_node("draft", node)
    builder.add_edge(START, "draft")
    return builder.compile()


def says(_state):
    return {"said": FakeListChatModel(responses=["Hello"]).invoke("hi").text}


def watched(graph, scope):
    scope.runnable(graph).invoke({})


def v3(graph, scope):
    list(graph.stream_events({}, version="v3", transformers=[scope.usage()]))


def dropped(graph, scope):
    run = graph.stream_events({}, version="v3", transformers=[scope.usage()])
    next(iter(run))


@pytest.mark.parametrize("way", [watched, v3, dropped], ids=lambda way: way.__name__)
def test_a_scope_that_is_closed_goes(way):
    """Runs that ended keep no scope alive, nor its threads."""
    with scope_for_tests() as (scope, _sink):
        way(graph_of(says), scope)
        gone = weakref.ref(scope._parts.guards)
    del scope, _sink
    gc.collect()

    assert gone() is None


def test_nobodys_data_is_kept():
    """What is kept of a run names no customer, and holds no message."""
    with scope_for_tests() as (scope, _sink), context(customer=MAIL, known=("Ada",)):
        before = set(graph_callbacks().runs._ended)
        watched(graph_of(says), scope)
        kept = [run for key, run in graph_callbacks().runs._ended.items() if key not in before]

        assert len(kept) == 3
        assert [run.scope.customer for run in kept] == [None] * 3
        assert [(run.metadata, run.streamed, run.usage) for run in kept] == [({}, None, None)] * 3


def test_what_begins_after_its_run_is_counted():
    """A model that a task calls after the run is the run's, for as long as its scope lives."""
    configs = []

    def node(_state):
        configs.append(var_child_runnable_config.get())
        return {"said": "x"}

    with scope_for_tests() as (scope, sink):
        with context(tenant="acme"):
            watched(graph_of(node), scope)
        FakeListChatModel(responses=["Hello"]).invoke("hi", configs[0])
        scope.flush(GIVE_UP_S)
        run = next(each for each in sink.events if each.operation == "invoke_agent")
        late = sink.events[-1]

    assert (late.operation, late.tenant) == ("chat", "acme")
    assert late.trace.trace_id == run.trace.trace_id
