"""The place of each run of a node, as its event seals it: what routes are made again from."""

from __future__ import annotations

from contextlib import closing
from typing import TypedDict

import orjson
import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from mnemoscope.memory import Mnemoscope, load_settings
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.event.node_run import NodeRun
from tests.kit.patience import GIVE_UP_S

THREAD = {"configurable": {"thread_id": "t-1"}}


class State(TypedDict, total=False):
    text: str


@pytest.fixture
def sink():
    return CapturingSink()


@pytest.fixture
def scope(sink):
    made = Mnemoscope(load_settings(sinks="none", pii_model="none"), only_sinks=[sink])
    yield made
    made.close()


def graph_of(*nodes, **compiled):
    """Return a graph of *nodes* in a row."""
    builder = StateGraph(State)
    builder.add_sequence(nodes)
    builder.add_edge(START, nodes[0][0])
    return builder.compile(**compiled)


def places(scope, sink):
    """Return name and place of each node that ended, in that order."""
    scope.flush(timeout_s=GIVE_UP_S)
    found = [each for each in sink.events if each.operation == "execute_node"]
    return [(each.method, each.part(NodeRun)) for each in found]


def test_a_node_has_its_superstep_and_its_graph(scope, sink):
    """Nodes of one run of a graph share its span, and count LangGraph's supersteps."""
    scope.runnable(graph_of(("a", lambda _: {}), ("b", lambda _: {}))).invoke({"text": ""})
    (_, a), (_, b) = places(scope, sink)
    graph = next(each for each in sink.events if each.operation == "invoke_agent")

    assert (a.step, b.step) == (1, 2)
    assert a.graph == b.graph == graph.trace.span_id
    assert a.within is b.within is None


def test_a_node_of_a_subgraph_has_the_task_around_it(scope, sink):
    """Also where the graph is called by a function in a node."""
    inner = graph_of(("x", lambda _: {}))
    outer = graph_of(("sub", inner), ("calls", lambda _: inner.invoke({})))
    scope.runnable(outer).invoke({"text": ""})
    (_, first), (_, sub), (_, second), (_, calls) = places(scope, sink)

    assert (first.within, second.within) == (sub.task, calls.task)
    assert first.graph != sub.graph


def test_a_graph_in_a_tool_is_within_the_task_that_calls_the_tool(scope, sink):
    """The tool stands between, and is no task."""
    inner = graph_of(("x", lambda _: {}))

    @tool
    def delegate() -> str:
        """Have another graph do it."""
        inner.invoke({})
        return "done"

    scope.runnable(graph_of(("calls", lambda _: {"text": delegate.invoke({})}))).invoke({})
    (_, inside), (_, around) = places(scope, sink)

    assert inside.within == around.task


def test_tasks_of_one_node_in_one_superstep_are_told_apart(scope, sink):
    """As `Send` makes them."""
    builder = StateGraph(State)
    builder.add_node("w", lambda _: {})
    builder.add_conditional_edges(START, lambda _: [Send("w", {})] * 3, ["w"])
    scope.runnable(builder.compile()).invoke({"text": ""})
    found = [each for name, each in places(scope, sink) if name == "w"]

    assert [each.step for each in found] == [1, 1, 1]
    assert len({each.task for each in found}) == 3


def test_an_interrupted_node_is_left_and_has_its_task_again(scope, sink):
    """When the run is resumed, in another run of the graph."""
    asks = ("ask", lambda _: {"text": interrupt("?")})
    graph = scope.runnable(graph_of(asks, checkpointer=InMemorySaver()))
    graph.invoke({"text": ""}, THREAD)
    graph.invoke(Command(resume="yes"), THREAD)
    (_, asked), (_, resumed) = places(scope, sink)

    assert (asked.left, resumed.left) == (True, False)
    assert (asked.task, asked.step) == (resumed.task, resumed.step)
    assert asked.graph != resumed.graph


def test_a_place_is_sealed_without_content(scope, sink, tmp_path):
    """In the header, as numbers and random ids, of which readers of JSON lose no digit."""
    settings = load_settings(
        sinks="audit", audit_url=f"sqlite:///{tmp_path}/a.db", pii_model="none"
    )
    with closing(Mnemoscope(settings, extra_sinks=[sink])) as sealing:
        sealing.runnable(graph_of(("a", lambda _: {}))).invoke({"text": "secret"}, THREAD)
        ((_, place),) = places(sealing, sink)
        headers = [orjson.loads(each.header) for each in sealing.audit.rows(run="t-1")]
    (sealed,) = [each["node_run"] for each in headers if "node_run" in each]

    assert sealed == {
        "graph": f"{place.graph:016x}",
        "left": False,
        "step": 1,
        "task": place.task,
        "within": None,
    }


def test_a_command_for_the_graph_around_leaves_the_node_inside_alone(scope, sink):
    """The node around it goes on to where the command sends the run."""
    inner = graph_of(("go", lambda _: Command(goto="there", graph=Command.PARENT)))
    builder = StateGraph(State)
    builder.add_node("sub", inner, destinations=("there",))
    builder.add_node("there", lambda _: {})
    builder.add_edge(START, "sub")
    scope.runnable(builder.compile()).invoke({"text": ""})

    assert [(name, each.left) for name, each in places(scope, sink)] == [
        ("go", True),
        ("sub", False),
        ("there", False),
    ]
