"""What LangGraph saves for nodes that ran side by side, from threads that left their context."""

from __future__ import annotations

import asyncio
import operator
import subprocess
import sys
from typing import Annotated, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from mnemoscope.adapters.langgraph.checkpoint import adapter as langgraph_checkpoint
from mnemoscope.adapters.langgraph.runs.graph import runnable
from mnemoscope.memory import context
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.pricing.prices import Prices
from tests.kit.bench import wrapping
from tests.kit.patience import GIVE_UP_S

RUNS = 20
NAME = "Zebulon"
WHO = {"tenant": "acme", "customer": "c-42", "known": (NAME,)}


class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]


def side_by_side():
    """Return a builder of a graph with three nodes at once, each of which says the name."""
    builder = StateGraph(State)
    for name in ("a", "b", "c"):
        builder.add_node(name, lambda _state: {"said": [f"{NAME} called"]})
        builder.add_edge(START, name)
    return builder


def invoke(graph, config):
    graph.invoke({}, config)


def ainvoke(graph, config):
    asyncio.run(graph.ainvoke({}, config))


@pytest.fixture(params=[invoke, ainvoke], ids=lambda way: way.__name__)
def saved(request, bench, events):
    """Return a function that makes many runs for a customer, and returns bare saver and events."""

    def of(builder):
        bare = InMemorySaver()
        graph = builder.compile(checkpointer=wrapping(langgraph_checkpoint.ADAPTER)(bare, bench))
        watched = runnable(graph, bench.priced(Prices({})))
        for number in range(RUNS):
            with context(**WHO):
                request.param(watched, {"configurable": {"thread_id": f"t-{number}"}})
        return bare, [each for each in events() if each.method.endswith("put_writes")]

    return of


def test_writes_are_below_their_graph(saved, events):
    """Each is a child of the run that its task is part of."""
    _bare, writes = saved(side_by_side())
    runs = {
        each.trace.span_id: each.trace.trace_id
        for each in events()
        if each.operation == "invoke_agent"
    }

    assert len(writes) == 4 * RUNS  # the input's as well
    assert all(runs.get(each.trace.parent_span_id) == each.trace.trace_id for each in writes)


def test_writes_are_for_the_runs_customer(saved):
    """They are told, and can be found and erased, as what they are: one person's."""
    _bare, writes = saved(side_by_side())

    assert {each.tenant for each in writes} == {"acme"}
    assert all(each.subject is not None for each in writes)


def test_writes_of_a_subgraph_are_for_the_customer_too(saved):
    """A task of a subgraph is known as well."""
    builder = StateGraph(State)
    builder.add_node("outer", side_by_side().compile())
    builder.add_edge(START, "outer")
    _bare, writes = saved(builder)

    assert len(writes) > 4 * RUNS
    assert {each.tenant for each in writes} == {"acme"}


def test_what_is_known_of_the_customer_is_redacted(saved):
    """A name that only the context knows is in no write that reached the saver."""
    bare, _writes = saved(side_by_side())

    assert len(bare.writes) > RUNS
    assert NAME not in repr(bare.writes)
    assert NAME not in repr(bare.blobs)


@pytest.mark.parametrize("is_shown", [False, True], ids=["alone", "shown meanwhile"])
def test_a_graph_that_is_not_watched(bench, events, is_shown):
    """Who loaded the thread tells for whom its writes are; who merely looks at it does not."""
    bare = InMemorySaver()
    graph = side_by_side().compile(checkpointer=wrapping(langgraph_checkpoint.ADAPTER)(bare, bench))
    for number in range(RUNS):
        config = {"configurable": {"thread_id": f"t-{number}"}}
        with context(**WHO):
            parts = graph.stream({}, config)
            next(parts)
        if is_shown:
            graph.get_state(config)
        with context(**WHO):
            list(parts)
    writes = [each for each in events() if each.method == "put_writes"]

    assert len(writes) == 4 * RUNS
    assert {each.tenant for each in writes} == {"acme"}
    assert NAME not in repr(bare.writes)


def test_a_saver_alone_is_told_of_no_runs():
    """Where no graph is watched, LangChain is not asked to tell us of any."""
    script = """
from langchain_core.tracers import context as tracing
from langgraph.checkpoint.memory import InMemorySaver
from mnemoscope.memory.testing import scope_for_tests
with scope_for_tests() as (scope, _sink):
    saver = scope.checkpointer(InMemorySaver())
    ids = {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1"}
    saver.put_writes({"configurable": ids}, [("said", "x")], "task")
print([hook[0].name for hook in tracing._configure_hooks if "mnemoscope" in hook[0].name])
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )

    assert done.stdout.strip() == "[]"


def read_v3(graph, scope, config):
    assert graph.stream_events({}, config, version="v3", transformers=[scope.usage()]).output


def aread_v3(graph, scope, config):
    async def read():
        options = {"version": "v3", "transformers": [scope.usage()]}
        stream = await graph.astream_events({}, config, **options)
        assert await stream.output()

    asyncio.run(read())


def aread_events_v3(graph, scope, config):
    async def read():
        options = {"version": "v3", "transformers": [scope.usage()]}
        events = aiter(await graph.astream_events({}, config, **options))
        while await asyncio.create_task(step(events)) is not END:
            pass

    async def step(events):
        return await anext(events, END)

    asyncio.run(read())


END = object()


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
@pytest.mark.parametrize("read", [read_v3, aread_v3, aread_events_v3])
@pytest.mark.parametrize("nodes", ["one after the other", "side by side"])
def test_checkpoints_of_a_graph_that_is_not_wrapped_are_in_its_trace(read, nodes):
    """`usage()` alone: the run is one trace, whoever reads the stream where."""
    builder = side_by_side()
    if nodes == "one after the other":
        builder = StateGraph(State)
        builder.add_sequence([("a", lambda _: {"said": ["a"]}), ("b", lambda _: {"said": ["b"]})])
        builder.add_edge(START, "a")
    with scope_for_tests() as (scope, sink):
        graph = builder.compile(checkpointer=scope.checkpointer(InMemorySaver()))
        for number in range(3):
            read(graph, scope, {"configurable": {"thread_id": f"t-{number}"}})
        scope.flush(GIVE_UP_S)
        graphs = [each for each in sink.events if each.operation == "invoke_agent"]
        roots = {each.trace.span_id for each in graphs}

        assert len({each.trace.trace_id for each in sink.events}) == len(graphs) == 3
        assert {
            each.trace.parent_span_id for each in sink.events if "checkpoint" in each.operation
        } == roots
