"""A watched graph: the same graph in every way, with the spans of every run of it."""

from __future__ import annotations

import asyncio
import gc
import inspect
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.stream import StreamTransformer
from langgraph.types import Command, RetryPolicy, interrupt
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

from mnemoscope.adapters.langgraph.checkpoint import adapter as langgraph_checkpoint
from mnemoscope.adapters.langgraph.runs.callbacks import GraphCallbacks, graph_callbacks
from mnemoscope.adapters.langgraph.runs.graph import runnable
from mnemoscope.adapters.langgraph.runs.stream import UsageFactory, UsageTransformer
from mnemoscope.adapters.langgraph.store import adapter as langgraph_store
from mnemoscope.memory import UnsupportedClientError, context, feature
from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.telemetry.pricing.prices import Prices
from tests.kit.bench import wrapping
from tests.kit.patience import GIVE_UP_S

MAIL = "ada@example.com"
PRICES = Prices({})
CALLER = SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=TraceFlags(1))

pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")


class State(TypedDict, total=False):
    said: str


def model():
    return FakeListChatModel(responses=["Hello"])


def says(_state):
    return {"said": model().invoke("hi").text}


async def asays(_state):
    return {"said": (await model().ainvoke("hi")).text}


def chain_of(**nodes):
    """Return a builder of a graph that runs *nodes* one after another."""
    builder, last = StateGraph(State), START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(last, name)
        last = name
    return builder


def invoke(graph, config=None):
    return graph.invoke({}, config)


def stream(graph, config=None):
    return list(graph.stream({}, config, stream_mode="values"))[-1]


def v3(graph, config=None):
    return graph.stream_events({}, config, version="v3").output


def ainvoke(graph, config=None):
    return asyncio.run(graph.ainvoke({}, config))


def astream(graph, config=None):
    async def drain():
        return [each async for each in graph.astream({}, config, stream_mode="values")][-1]

    return asyncio.run(drain())


def av2(graph, config=None):
    async def drain():
        events = [each async for each in graph.astream_events({}, config, version="v2")]
        return events[-1]["data"]["output"]

    return asyncio.run(drain())


def av3(graph, config=None):
    async def drain():
        run = await graph.astream_events({}, config, version="v3")
        return await run.output()

    return asyncio.run(drain())


EVERY_WAY = [invoke, stream, v3, ainvoke, astream, av2, av3]


@pytest.fixture(params=EVERY_WAY, ids=lambda way: way.__name__)
def way(request):
    """Return a function that runs a graph to its end, in each way there is."""
    return request.param


@pytest.fixture
def watched(bench):
    """Return a function that compiles and watches a graph."""

    def compiled(builder, *, features=None, **options):
        return runnable(builder.compile(**options), bench.priced(PRICES), features)

    return compiled


@pytest.fixture
def tree(events):
    """Return a function that returns, for each span, the names from the top down to it."""

    def paths():
        by_span = {each.trace.span_id: each for each in events()}

        def path(event):
            above = by_span.get(event.trace.parent_span_id)
            name = event.method if event.is_frame else event.operation
            return (*(path(above) if above else ()), name)

        return sorted(path(each) for each in events())

    return paths


@tool
def lookup(name: str) -> str:
    """Look a name up."""
    return name


class TestSpans:
    def test_spans_match_the_graph(self, way, watched, tree, events):
        """Graph, node, subgraph, inner node, tool and model call hang below each other."""

        def uses_a_tool(_state):
            lookup.invoke({"name": "x"})
            return {"said": "x"}

        inner = chain_of(inmost=says).compile(name="inner-graph")
        way(watched(chain_of(outer=inner, plain=uses_a_tool), name="the-graph"))

        assert tree() == [
            ("the-graph",),
            ("the-graph", "outer"),
            ("the-graph", "outer", "inner-graph"),
            ("the-graph", "outer", "inner-graph", "inmost"),
            ("the-graph", "outer", "inner-graph", "inmost", "chat"),
            ("the-graph", "plain"),
            ("the-graph", "plain", "lookup"),
        ]
        assert len({each.trace.trace_id for each in events()}) == 1

    def test_tasks_of_an_entrypoint_are_nodes(self, bench, tree):
        """The functional interface is watched alike: its tasks are nodes of the entrypoint."""

        @task
        def drafts(_given: str) -> str:
            return model().invoke("hi").text

        @entrypoint()
        def flow(given: str) -> list[str]:
            return [each.result() for each in [drafts(given), drafts(given)]]

        assert runnable(flow, bench.priced(PRICES)).invoke("x") == ["Hello", "Hello"]
        assert tree().count(("LangGraph", "flow", "drafts", "chat")) == 2

    def test_a_part_with_its_nodes_name_is_no_node(self, watched, tree):
        """A chain inside a node that is called like the node is part of it."""

        def node(_state):
            return RunnableLambda(says).with_config(run_name="draft").invoke({})

        invoke(watched(chain_of(draft=node), name="g"))

        assert tree() == [("g",), ("g", "draft"), ("g", "draft", "chat")]

    def test_frames_say_what_they_are(self, watched, events):
        """Operations are named by the GenAI conventions, and hold nothing of the state."""
        invoke(watched(chain_of(draft=says), name="the-graph"))
        chat, node, graph = events()

        assert (chat.operation, chat.store) == ("chat", "langgraph.model")
        assert (node.operation, node.store, node.method) == (
            "execute_node",
            "langgraph.node",
            "draft",
        )
        assert (graph.operation, graph.store) == ("invoke_agent", "langgraph.graph")
        assert {each.op_class for each in events()} == {OperationClass.MODEL}
        assert all(each.content is None for each in events())
        assert graph.duration_s >= node.duration_s >= chat.duration_s > 0

    def test_a_run_is_below_its_callers_span(self, way, watched, events):
        """W3C context in: the graph's span is a child of the span that is current at the call."""
        with use_span(NonRecordingSpan(CALLER)):
            way(watched(chain_of(draft=asays if way in EVERY_WAY[3:] else says)))
        graph = events()[-1]

        assert {each.trace.trace_id for each in events()} == {CALLER.trace_id}
        assert graph.trace.parent_span_id == CALLER.span_id
        assert graph.trace.parent_is_remote

    @pytest.mark.parametrize("read_elsewhere", [False, True])
    def test_a_stream_is_below_the_span_it_was_started_in(self, read_elsewhere, bench, events):
        """A stream belongs to whoever started it, wherever it is read."""
        graph = chain_of(draft=says).compile()
        with use_span(NonRecordingSpan(CALLER)):
            run = graph.stream_events(
                {}, version="v3", transformers=[UsageFactory(bench.priced(PRICES))]
            )
            if not read_elsewhere:
                list(run)
        if read_elsewhere:
            list(run)

        assert events()[-1].trace.parent_span_id == CALLER.span_id
        assert {each.trace.trace_id for each in events()} == {CALLER.trace_id}

    def test_two_runs_have_two_traces(self, way, watched, events):
        """Where the caller has no trace, each run begins one."""
        graph = watched(chain_of(draft=says))
        way(graph)
        way(graph)

        assert len({each.trace.trace_id for each in events()}) == 2

    def test_memory_operations_are_below_their_node(self, way, bench, watched, tree):
        """What a node remembers is a child of the node's span, in its trace."""
        store = wrapping(langgraph_store.ADAPTER)(InMemoryStore(), bench)

        def remembers(_state):
            store.put(("facts", "c-42"), "k", {"likes": "rain"})
            return {"said": "done"}

        way(watched(chain_of(first=remembers, second=says), name="g"))

        assert [each for each in tree() if "memory" in each[-1]] == [
            ("g", "first", "upsert_memory")
        ]

    def test_checkpoints_are_below_their_graph(self, way, bench, watched, events):
        """What LangGraph loads and saves for a run, from its own threads too, is part of it."""
        saver = wrapping(langgraph_checkpoint.ADAPTER)(InMemorySaver(), bench)
        graph = watched(chain_of(draft=says), checkpointer=saver)
        way(graph, {"configurable": {"thread_id": "t-1"}})
        kept = [each for each in events() if each.store == "langgraph.checkpoint"]
        (run,) = (each for each in events() if each.operation == "invoke_agent")

        assert len(kept) >= 3
        assert {each.trace.parent_span_id for each in kept} == {run.trace.span_id}

    def test_memory_operations_in_a_tool_are_below_the_tool(self, bench, watched, tree):
        """The nearest span is the parent."""
        store = wrapping(langgraph_store.ADAPTER)(InMemoryStore(), bench)

        @tool
        def recall(key: str) -> str:
            """Recall."""
            return str(store.get(("facts", "c-42"), key))

        def node(_state):
            return {"said": recall.invoke({"key": "k"})}

        invoke(watched(chain_of(draft=node), name="g"))

        assert ("g", "draft", "recall", "search_memory") in tree()

    def test_a_span_of_the_hosts_in_a_node_is_nearer(self, bench, watched, events):
        """A memory operation inside the host's own span, inside a node, is that span's child."""
        store = wrapping(langgraph_store.ADAPTER)(InMemoryStore(), bench)

        def node(_state):
            with use_span(NonRecordingSpan(CALLER)):
                store.get(("facts", "c-42"), "k")
                return says(_state)

        invoke(watched(chain_of(draft=node)))
        parents = {each.operation: each.trace.parent_span_id for each in events()}

        assert parents["search_memory"] == CALLER.span_id
        assert parents["chat"] == CALLER.span_id

    def test_threads_and_tasks_of_a_node_are_part_of_it(self, bench, watched, tree):
        """LangChain's own threads, and tasks, take the node along."""

        async def node(_state):
            await asyncio.gather(asyncio.to_thread(says, {}), asyncio.create_task(asays({})))
            return {"said": "x"}

        ainvoke(watched(chain_of(draft=node), name="g"))

        assert tree().count(("g", "draft", "chat")) == 2

    def test_runs_in_a_thread_pool_are_told_apart(self, watched, tree, events):
        """Twenty runs side by side are twenty traces, with nothing of each other's."""
        graph = watched(chain_of(draft=says), name="g")
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _n: graph.invoke({}), range(20)))

        assert len({each.trace.trace_id for each in events()}) == 20
        assert tree().count(("g", "draft", "chat")) == 20

    def test_each_attempt_is_a_span(self, way, watched, events):
        """A node that is tried again has a span for each attempt, the failed ones so marked."""
        tries = []

        def fails_once(_state):
            tries.append(1)
            if len(tries) == 1:
                raise ConnectionError(MAIL)
            return {"said": "x"}

        builder = StateGraph(State)
        policy = RetryPolicy(max_attempts=2, initial_interval=0.001, jitter=False)
        builder.add_node("draft", fails_once, retry_policy=policy)
        builder.add_edge(START, "draft")
        way(watched(builder))
        attempts = [each for each in events() if each.method == "draft"]

        assert [(each.status, each.error) for each in attempts] == [
            (Status.ERROR, "ConnectionError"),
            (Status.OK, None),
        ]
        assert MAIL not in repr(events())

    def test_an_interrupt_is_no_error(self, watched, events):
        """A node that waits for a person has not failed; the resumed run is another one."""
        graph = watched(
            chain_of(ask=lambda _state: {"said": interrupt("go on?")}),
            checkpointer=InMemorySaver(),
        )
        config = {"configurable": {"thread_id": "t-1"}}
        graph.invoke({}, config)
        graph.invoke(Command(resume="yes"), config)

        assert {each.status for each in events()} == {Status.OK}
        assert [each.operation for each in events()] == ["execute_node", "invoke_agent"] * 2


class TestFeatures:
    def test_a_feature_by_node_name(self, way, watched, events):
        """A graph whose code says nothing of features has them by the names of its nodes."""
        inner = chain_of(inmost=says).compile()
        graph = watched(
            chain_of(outer=inner, other=says), features={"outer": "reply", "inmost": "draft"}
        )
        way(graph)

        assert {each.usage.node: each.feature for each in events() if each.usage} == {
            "inmost": "reply/draft",
            "other": None,
        }

    def test_a_path_of_features(self, watched, events):
        """The caller's feature, then the node's, then what the code inside says."""

        @feature("tone")
        def tone(_state):
            return says(_state)

        with context(feature="mail"):
            invoke(watched(chain_of(draft=tone, check=says), features={"draft": "reply"}))

        assert {each.usage.node: each.feature for each in events() if each.usage} == {
            "draft": "mail/reply/tone",
            "check": "mail",
        }

    def test_frames_are_attributed_too(self, watched, events):
        """Graph and node know for whom the run is, and the node which feature it is."""
        with context(tenant="acme", customer=MAIL, agent="sales"):
            invoke(watched(chain_of(draft=says), features={"draft": "reply"}))
        told = {each.operation: each for each in events()}

        assert {each.tenant for each in events()} == {"acme"}
        assert all(each.subject is not None for each in events())
        assert told["execute_node"].feature == "reply"
        assert told["invoke_agent"].feature is None
        assert MAIL not in repr(events())


class TestTransparency:
    def test_it_is_the_same_graph(self, bench):
        """Class, attributes, drawing and signatures are the graph's own."""
        graph = chain_of(draft=says).compile(name="g")
        same = runnable(graph, bench.priced(PRICES))

        assert isinstance(same, CompiledStateGraph)
        assert type(same).__name__ == type(graph).__name__
        assert (same.name, same.nodes, same.builder) == (graph.name, graph.nodes, graph.builder)
        assert same.get_graph().to_json() == graph.get_graph().to_json()
        for name in ("invoke", "ainvoke", "stream", "astream", "stream_events", "astream_events"):
            assert inspect.signature(getattr(same, name)) == inspect.signature(getattr(graph, name))

    def test_the_graph_that_was_given_is_left_alone(self, bench, events):
        """Who calls the bare graph is not watched: the model's call is counted, and no more."""
        graph = chain_of(draft=says).compile()
        runnable(graph, bench.priced(PRICES))
        invoke(graph)

        assert [each.operation for each in events()] == ["chat"]

    def test_copies_are_watched(self, watched, events):
        """What ``with_config`` returns is watched as well."""
        invoke(watched(chain_of(draft=says)).with_config(tags=["x"]))

        assert len(events()) == 3

    def test_watched_twice_is_told_once(self, bench, watched, events):
        """Wrapping a wrapped graph changes nothing."""
        v3(runnable(watched(chain_of(draft=says)), bench.priced(PRICES)))

        assert len(events()) == 3

    def test_a_watched_subgraph_is_told_once(self, way, watched, events):
        """A watched graph as a node of a watched graph has one event for each run."""
        way(watched(chain_of(outer=watched(chain_of(inmost=says)))))

        assert sorted(each.operation for each in events()) == [
            "chat",
            "execute_node",
            "execute_node",
            "invoke_agent",
            "invoke_agent",
        ]

    def test_batches_are_watched(self, watched, events):
        """Each run of a batch is a run."""
        watched(chain_of(draft=says)).batch([{}, {}, {}])

        assert [each.operation for each in events()].count("invoke_agent") == 3

    def test_the_callers_config_is_left_as_it_was(self, way, watched):
        """No key is added to a config that may be used again."""
        config = {"tags": ["x"]}
        way(watched(chain_of(draft=says)), config)

        assert config == {"tags": ["x"]}

    def test_a_run_id_of_the_callers_is_kept(self, watched, events):
        """The run has the id it was given."""
        from uuid import uuid4

        seen = []

        class Ids(BaseCallbackHandler):
            def on_chain_start(self, *_args, run_id, **_kwargs):
                seen.append(run_id)

        given = uuid4()
        invoke(watched(chain_of(draft=says)), {"run_id": given, "callbacks": [Ids()]})

        assert seen[0] == given
        assert len(events()) == 3

    def test_answers_are_the_graphs(self, way, watched):
        """What comes out is what would have come out."""
        assert way(watched(chain_of(draft=says)))["said"] == "Hello"

    def test_only_graphs(self, bench):
        """Anything else is refused, with what was expected."""
        with pytest.raises(UnsupportedClientError, match="Pregel"):
            runnable(lambda: None, bench.priced(PRICES))

    def test_totals_are_on_the_stream(self, watched):
        """A v3 stream of a watched graph shows its totals, also next to a transformer of ours."""
        run = watched(chain_of(draft=says)).stream_events({}, version="v3")
        list(run)

        assert run.extensions["usage"].calls == 1

    async def test_totals_are_on_an_asynchronous_stream(self, watched):
        """As on the other, once it is awaited."""
        run = await watched(chain_of(draft=says)).astream_events({}, version="v3")
        await run.output()

        assert run.extensions["usage"].calls == 1

    def test_a_channel_of_the_same_name_is_the_callers(self, watched):
        """What the application's own transformer shows as ``usage`` stays what it is."""

        class Theirs(StreamTransformer):
            def init(self):
                return {"usage": "theirs"}

            def process(self, event):
                return True

        run = watched(chain_of(draft=says)).stream_events({}, version="v3", transformers=[Theirs])
        list(run)

        assert run.extensions["usage"] == "theirs"

    def test_both_ways_at_once_count_once(self, bench, watched, events):
        """A watched graph given a transformer too shows right totals, and tells once."""
        run = watched(chain_of(draft=says)).stream_events(
            {}, version="v3", transformers=[UsageFactory(bench.priced(PRICES))]
        )
        list(run)

        assert run.extensions["usage"].calls == 1
        assert len(events()) == 3


class Hangs:
    """A node that begins and does not end."""

    def __init__(self):
        self._begun = asyncio.Event()

    async def __call__(self, _state=None):
        self._begun.set()
        await asyncio.Event().wait()

    async def cancelled_in(self, run):
        """Cancel *run* once the node is at work in it."""
        task = asyncio.ensure_future(run)
        await self._begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


class TestLeft:
    """Runs that nobody reads to their end: no span stays open."""

    @pytest.fixture(autouse=True)
    def nothing_left_open(self):
        """Whatever the test does, no run is open when it is over."""
        before = set(graph_callbacks().runs._open)
        yield
        gc.collect()
        assert set(graph_callbacks().runs._open) <= before

    def test_a_stream_that_is_broken_off(self, watched, events):
        """A consumer that breaks ends the run; it is told as cancelled."""
        for _part in watched(chain_of(a=says, b=says)).stream({}):
            break
        gc.collect()

        assert events()[-1].operation == "invoke_agent"
        assert events()[-1].status is Status.CANCELLED

    def test_a_v3_stream_that_is_dropped(self, watched, events):
        """A run that is started, read a little and forgotten ends when it is collected."""
        run = watched(chain_of(a=says, b=says)).stream_events({}, version="v3")
        next(iter(run))
        del run
        gc.collect()

        assert events()[-1].status is Status.CANCELLED

    def test_a_stream_that_is_never_read(self, watched, events):
        """A run that never began is no run."""
        graph = watched(chain_of(a=says))
        graph.stream({})
        graph.stream_events({}, version="v3")
        gc.collect()

        assert events() == []
        assert not graph_callbacks().runs._expected

    @pytest.mark.parametrize("version", ["invoke", "v3"])
    def test_a_task_that_is_cancelled(self, version, watched, events):
        """A run whose task is cancelled while a model answers ends there, with all inside it."""

        async def cancelled():
            hangs = Hangs()
            graph = watched(chain_of(draft=hangs))
            await hangs.cancelled_in(graph.ainvoke({}) if version == "invoke" else read(graph))

        async def read(graph):
            run = await graph.astream_events({}, version="v3")
            return await run.output()

        asyncio.run(cancelled())

        assert {(each.operation, each.status) for each in events()} == {
            ("execute_node", Status.CANCELLED),
            ("invoke_agent", Status.CANCELLED),
        }

    def test_a_model_call_that_is_cancelled(self, watched, events):
        """A model call that no callback ends, ends with its run."""

        async def cancelled():
            hangs = Hangs()

            class Hanging(FakeListChatModel):
                async def _agenerate(self, *_args: Any, **_kwargs: Any) -> Any:
                    await hangs()

            async def node(_state):
                await Hanging(responses=["x"], disable_streaming=True).ainvoke("hi")

            await hangs.cancelled_in(watched(chain_of(draft=node)).ainvoke({}))

        asyncio.run(cancelled())
        told = {each.operation: each for each in events()}

        assert told["chat"].status is Status.CANCELLED
        assert not told["chat"].usage.reported
        assert told["chat"].usage.cost_usd is None

    def test_a_reader_that_raises(self, watched, events):
        """An error of the consumer's own ends the run, and is the consumer's."""

        async def reads():
            async for _part in watched(chain_of(a=asays, b=asays)).astream({}):
                raise RuntimeError("mine")

        with pytest.raises(RuntimeError, match="mine"):
            asyncio.run(reads())

        assert events()[-1].status is Status.CANCELLED

    @pytest.mark.parametrize("is_async", [False, True])
    def test_a_run_of_whose_end_nobody_tells(self, is_async, watched, events, monkeypatch):
        """Where no callback comes, a run ends when its reader leaves."""
        monkeypatch.setattr(GraphCallbacks, "on_chain_error", lambda *_args, **_kwargs: None)
        graph = watched(chain_of(a=says, b=says))

        async def reads():
            parts = graph.astream({})
            async for _part in parts:
                break
            await parts.aclose()

        if is_async:
            asyncio.run(reads())
        else:
            for _part in graph.stream({}):
                break
        gc.collect()

        assert events()[-1].operation == "invoke_agent"
        assert events()[-1].status is Status.CANCELLED

    def test_a_task_that_outlives_its_node_is_counted(self, watched, events):
        """A model call that a node started and did not wait for is still the graph's."""
        tasks, go = [], asyncio.Event()

        async def later():
            await go.wait()
            await asays({})

        async def node(_state):
            tasks.append(asyncio.create_task(later()))
            return {"said": "x"}

        async def waits(_state):
            go.set()
            await tasks[0]
            return {"said": "y"}

        ainvoke(watched(chain_of(first=node, second=waits)))
        (chat,) = (each for each in events() if each.usage)

        assert (chat.status, chat.usage.node) == (Status.OK, "first")

    @pytest.mark.long
    @pytest.mark.skipif(
        (3, 12) <= sys.version_info < (3, 12, 3),
        reason="these start no thread at exit: python/cpython#113964, mended in 3.12.3",
    )
    def test_at_exit_what_is_open_is_told(self):
        """A process that ends in the middle of a run tells of it, as cancelled."""
        script = """
import os
os.environ["MNEMOSCOPE_SINKS"] = ""
from typing import TypedDict
from langgraph.graph import START, StateGraph
from mnemoscope.memory import Mnemoscope
from mnemoscope.memory.settings import load_settings

class Printed:
    name, idempotent = "printed", False
    def write(self, batch): print(*((e.operation, e.status.value) for e in batch))
    def flush(self, timeout_s): return True
    def close(self, timeout_s): pass

class State(TypedDict, total=False):
    said: str

scope = Mnemoscope(load_settings(pii_model="none"), only_sinks=[Printed()])
builder = StateGraph(State)
builder.add_node("a", lambda s: {})
builder.add_edge(START, "a")
parts = scope.runnable(builder.compile()).stream({}, stream_mode=["tasks"])
next(parts)
"""
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=GIVE_UP_S,
            check=True,
        )

        assert "('invoke_agent', 'cancelled')" in done.stdout


class TestHarmless:
    def test_a_sink_that_raises(self, way, watched, collector, monkeypatch, bench):
        """An exporter that fails is nobody's business but its own."""

        def broken(_batch):
            raise RuntimeError(MAIL)

        monkeypatch.setattr(collector, "write", broken)

        assert way(watched(chain_of(draft=says)))["said"] == "Hello"
        bench.drain.flush(GIVE_UP_S)

    def test_a_hook_that_raises(self, way, watched, monkeypatch):
        """An error inside the bridge does not touch the run."""

        def broken(*_args, **_kwargs):
            raise RuntimeError(MAIL)

        monkeypatch.setattr(UsageTransformer, "_found", broken)
        monkeypatch.setattr("mnemoscope.adapters.langgraph.runs.meter.Meter.run_ended", broken)

        assert way(watched(chain_of(draft=says)))["said"] == "Hello"

    def test_a_meter_that_cannot_be_made(self, way, watched, monkeypatch, bench):
        """A run that cannot be watched runs."""
        monkeypatch.setattr("mnemoscope.adapters.langgraph.runs.stream.Meter", None)

        assert way(watched(chain_of(draft=says)))["said"] == "Hello"
        assert bench.faults.counts["stream.begin"] >= 1

    def test_an_error_of_the_nodes_is_the_callers(self, way, watched, events):
        """What a node raises comes out as it went in."""
        mine = ConnectionError(MAIL)

        def fails(_state):
            raise mine

        with pytest.raises(ConnectionError) as caught:
            way(watched(chain_of(draft=fails)))

        assert caught.value is mine
        assert {each.status for each in events()} == {Status.ERROR}
        assert MAIL not in repr(events())
