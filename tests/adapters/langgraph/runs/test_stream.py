"""The v3 bridge: scripted models with known usage, in real graphs, counted exactly once."""

from __future__ import annotations

import asyncio
import operator
from collections import Counter
from dataclasses import replace
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.callbacks import CallbackManager
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, Send, interrupt

from mnemoscope.adapters.langgraph.runs import stream as langgraph_stream
from mnemoscope.adapters.langgraph.runs.callbacks import GraphCallbacks
from mnemoscope.adapters.langgraph.runs.graph import runnable
from mnemoscope.adapters.langgraph.runs.runs import Runs
from mnemoscope.adapters.langgraph.runs.stream import UsageFactory
from mnemoscope.memory import context, feature
from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.telemetry.pricing.prices import Price, PriceFileError, Prices
from tests.kit.patience import GIVE_UP_S

MAIL = "ada@example.com"
PRICES = Prices({"scripted-1": Price(input=1.0, output=2.0, cached_input=0.5, cache_write=4.0)})
USED = {
    "input_tokens": 100,
    "output_tokens": 25,
    "total_tokens": 125,
    "input_token_details": {"cache_read": 40, "cache_creation": 10},
    "output_token_details": {"reasoning": 12},
}
COST = (50 * 1.0 + 40 * 0.5 + 10 * 4.0 + 25 * 2.0) / 1_000_000

pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")


class Scripted(BaseChatModel):
    """A model that streams two chunks and reports the usage it is told to."""

    used: Any = USED
    fails: int = 0
    message_id: str | None = None

    @property
    def _llm_type(self):
        return "scripted"

    def _get_ls_params(self, stop=None, **kwargs):
        return {"ls_provider": "fakeco", "ls_model_name": "scripted-1", "ls_model_type": "chat"}

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=self._whole())])

    def _whole(self):
        about = {"model_name": "scripted-1", "model_provider": "fakeco"}
        return AIMessage(
            "Hello", usage_metadata=self.used, response_metadata=about, id=self.message_id
        )

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        about = {"model_name": "scripted-1", "model_provider": "fakeco"}
        yield ChatGenerationChunk(message=AIMessageChunk("Hel", response_metadata=about))
        if self.fails:
            self.fails -= 1
            raise ConnectionError(MAIL)
        yield ChatGenerationChunk(message=AIMessageChunk("lo", usage_metadata=self.used))


class Plain(Scripted):
    """The same without streaming."""

    disable_streaming: bool = True


class State(TypedDict):
    said: Annotated[list[Any], operator.add]


def calling(model):
    return lambda _state: {"said": [str(model.invoke("hi").content)]}


def graph_of(**nodes):
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(START, name)
    return builder.compile()


@pytest.fixture
def run(bench):
    """Return a function that runs a graph to its end, in the mode that is asked for."""
    factory = UsageFactory(bench.priced(PRICES))

    def streamed(graph, inputs=None, config=None, **kwargs):
        options = {"version": "v3", "transformers": [factory], **kwargs}
        stream = graph.stream_events(inputs or {"said": []}, config, **options)
        list(stream)
        return stream

    async def astreamed(graph, inputs=None, config=None, **kwargs):
        options = {"version": "v3", "transformers": [factory], **kwargs}
        stream = await graph.astream_events(inputs or {"said": []}, config, **options)
        async for _event in stream:
            pass
        return stream

    def either(mode, *args, **kwargs):
        if mode == "sync":
            return streamed(*args, **kwargs)
        return asyncio.run(astreamed(*args, **kwargs))

    return either


@pytest.fixture
def events(bench, collector):
    """Return a function that waits for the drain and returns the events of model calls."""

    def settled():
        assert bench.drain.flush(GIVE_UP_S)
        return [each for each in collector.collected if each.operation == "chat"]

    return settled


@pytest.fixture(params=["sync", "async"])
def mode(request):
    return request.param


def tokens(events):
    return [(each.usage.input_tokens, each.usage.output_tokens) for each in events()]


class TestCounting:
    def test_a_model_call_is_one_event(self, run, mode, events):
        """Everything that the model reported is in one event."""
        run(mode, graph_of(draft=calling(Scripted())))
        (event,) = events()
        used = event.usage

        assert (event.operation, event.op_class) == ("chat", OperationClass.MODEL)
        assert (event.store, event.method) == ("langgraph.model", "stream")
        assert event.status is Status.OK
        assert (used.model, used.provider, used.node) == ("scripted-1", "fakeco", "draft")
        assert (used.input_tokens, used.output_tokens) == (100, 25)
        assert (used.cached_tokens, used.cache_write_tokens) == (40, 10)
        assert used.reasoning_tokens == 12
        assert used.cost_usd == pytest.approx(COST)

    def test_a_model_that_does_not_stream_is_counted(self, run, mode, events):
        """A whole message counts once, with the same figures, and has no first token."""
        run(mode, graph_of(draft=calling(Plain())))
        (event,) = events()

        assert event.usage.cost_usd == pytest.approx(COST)
        assert event.usage.time_to_first_token_s is None
        assert event.duration_s > 0

    def test_a_message_with_the_providers_own_id_is_counted(self, run, mode, events):
        """A whole message whose id is the provider's is known by the call that made it."""
        run(mode, graph_of(draft=calling(Plain(message_id="chatcmpl-1"))))

        assert tokens(events) == [(100, 25)]

    def test_a_message_made_by_hand_is_not_counted(self, run, mode, events):
        """Usage on a message for which no model was called is nobody's spend."""

        class Messages(TypedDict):
            messages: Annotated[list[Any], operator.add]

        def forge(_state):
            return {"messages": [AIMessage("made up", usage_metadata=USED)]}

        builder = StateGraph(Messages)
        builder.add_node("forge", forge)
        builder.add_edge(START, "forge")
        run(mode, builder.compile(), {"messages": []})

        assert events() == []

    def test_a_reply_that_is_returned_is_counted_once(self, run, mode, events):
        """A model's reply that goes into the state, or a copy of it, is not another call."""

        class Messages(TypedDict):
            messages: Annotated[list[Any], operator.add]

        for model in (Scripted(), Plain()):
            builder = StateGraph(Messages)
            builder.add_node(
                "draft",
                lambda _state, model=model: {
                    "messages": [
                        (reply := model.invoke("hi")),
                        reply.model_copy(update={"id": None}),
                    ]
                },
            )
            builder.add_edge(START, "draft")
            run(mode, builder.compile(), {"messages": []})

        assert tokens(events) == [(100, 25), (100, 25)]

    def test_subgraphs_are_counted_once(self, run, mode, events):
        """Calls two levels deep are seen by every level's transformer and counted by one."""
        inner = graph_of(inmost=calling(Scripted()))
        middle = StateGraph(State)
        middle.add_node("inner", inner)
        middle.add_node("beside", calling(Scripted()))
        middle.add_edge(START, "inner")
        middle.add_edge("inner", "beside")
        stream = run(mode, graph_of(middle=middle.compile()))

        assert stream.extensions["usage"].calls == 2
        assert sorted((each.usage.namespace, each.usage.node) for each in events()) == [
            (("middle",), "beside"),
            (("middle", "inner"), "inmost"),
        ]

    def test_a_run_inside_a_node_is_counted_once(self, bench, events):
        """A nested stream has a transformer of its own, and both see the same call."""
        factory = UsageFactory(bench.priced(PRICES))
        inner = graph_of(inmost=calling(Scripted()))

        def nest(_state):
            stream = inner.stream_events({"said": []}, version="v3", transformers=[factory])
            return {"said": stream.output["said"]}

        stream = graph_of(outer=nest).stream_events(
            {"said": []}, version="v3", transformers=[UsageFactory(bench.priced(PRICES))]
        )
        list(stream)

        assert tokens(events) == [(100, 25)]

    def test_two_transformers_count_once(self, run, bench, events):
        """Registered at compile time and per call, a call is counted once and nothing collides."""
        builder = StateGraph(State)
        builder.add_node("draft", calling(Scripted()))
        builder.add_edge(START, "draft")
        graph = builder.compile(transformers=[UsageFactory(bench.priced(PRICES))])
        stream = run("sync", graph)

        assert tokens(events) == [(100, 25)]
        assert stream.extensions["usage"].calls == 1

    def test_parallel_nodes_and_sends_are_all_counted(self, run, mode, events):
        """Interleaved calls of one node and of several are told apart."""
        builder = StateGraph(State)
        builder.add_node("worker", calling(Scripted()))
        builder.add_node("other", calling(Scripted()))
        builder.add_edge(START, "other")
        builder.add_conditional_edges(
            START, lambda _state: [Send("worker", {"said": []}) for _ in range(5)], ["worker"]
        )
        run(mode, builder.compile())

        assert Counter(each.usage.node for each in events()) == {"worker": 5, "other": 1}
        assert set(tokens(events)) == {(100, 25)}

    def test_retries_are_billed_and_counted(self, run, mode, events):
        """Each attempt of a node asks the model again: the failed ones are told as failed."""
        model = Scripted(fails=2)
        builder = StateGraph(State)
        policy = RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False)
        builder.add_node("draft", calling(model), retry_policy=policy)
        builder.add_edge(START, "draft")
        run(mode, builder.compile())

        assert sorted(each.status.value for each in events()) == ["error", "error", "ok"]
        assert sum(each.usage.input_tokens for each in events()) == 100
        assert {each.error for each in events()} == {None, "ConnectionError"}

    def test_an_interrupted_node_is_billed_again_on_resume(self, run, mode, events):
        """A call before an interrupt is made again on resume: both are counted."""
        model = Scripted()

        def ask(_state):
            model.invoke("hi")
            return {"said": [interrupt("go on?")]}

        builder = StateGraph(State)
        builder.add_node("ask", ask)
        builder.add_edge(START, "ask")
        graph = builder.compile(checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "t-1"}}
        run(mode, graph, None, config)
        run(mode, graph, Command(resume="yes"), config)

        assert tokens(events) == [(100, 25), (100, 25)]
        assert {each.run for each in events()} == {"t-1"}

    def test_a_run_that_fails_tells_of_what_was_open(self, run, mode, events):
        """A model that fails half-way is one event, with the type of its error and no more."""
        with pytest.raises(ConnectionError):
            run(mode, graph_of(draft=calling(Scripted(fails=1))))
        (event,) = events()

        assert (event.status, event.error) == (Status.ERROR, "ConnectionError")
        assert event.usage.model == "scripted-1"
        assert MAIL not in repr(event)

    @pytest.mark.parametrize(
        "used",
        [
            None,
            {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
        ],
    )
    def test_usage_that_is_not_reported_is_none(self, used, run, mode, events):
        """A provider that reports nothing is counted as a call with no tokens."""
        run(mode, graph_of(draft=calling(Scripted(used=used))))

        assert tokens(events) == [(0, 0)]

    @pytest.mark.parametrize("bad", [-5, "7", None, True, 1.5, {}])
    def test_usage_that_makes_no_sense_counts_for_nothing(self, bad, bench, events):
        """A number of tokens that is none is no tokens, and no error inside a run."""

        class Odd(Plain):
            def _whole(self):
                said = super()._whole()
                said.usage_metadata = {"input_tokens": bad, "output_tokens": 3, "total_tokens": 3}
                return said

        runnable(graph_of(draft=calling(Odd())), bench.priced(PRICES)).invoke({"said": []})

        assert tokens(events) == [(0, 3)]

    def test_an_unknown_model_has_tokens_and_no_cost(self, bench, events):
        """A model without a price is counted, and its cost is unknown, not zero."""
        stream = graph_of(draft=calling(Scripted())).stream_events(
            {"said": []}, version="v3", transformers=[UsageFactory(bench.priced(Prices({})))]
        )
        list(stream)
        (event,) = events()

        assert event.usage.input_tokens == 100
        assert event.usage.cost_usd is None
        assert stream.extensions["usage"].unpriced_calls == 1


class TestAttribution:
    def test_a_call_is_its_nodes_features(self, run, mode, events):
        """``@feature`` on a node names the spend of that node, parallel ones apart."""
        run(
            mode,
            graph_of(
                draft=feature("reply-draft")(calling(Scripted())),
                check=feature("spell-check")(calling(Scripted())),
                plain=calling(Scripted()),
            ),
        )

        assert {each.usage.node: each.feature for each in events()} == {
            "draft": "reply-draft",
            "check": "spell-check",
            "plain": None,
        }

    def test_features_inside_one_node_are_told_apart(self, run, mode, events):
        """Two features in one node are two features, however late the stream is read."""
        model = Scripted()

        def both(_state):
            with context(feature="first"):
                model.invoke("hi")
            with context(feature="second"):
                model.invoke("hi")
            return {"said": []}

        with context(feature="outer"):
            run(mode, graph_of(both=both))

        assert [each.feature for each in events()] == ["outer/first", "outer/second"]

    def test_a_call_is_for_whom_the_run_is(self, run, mode, events):
        """Tenant, customer, agent and purpose of the caller are the model call's."""
        with context(tenant="acme", customer=MAIL, agent="sales", purpose="reply"):
            run(mode, graph_of(draft=calling(Scripted())))
        (event,) = events()

        assert (event.tenant, event.agent, event.purpose) == ("acme", "sales", "reply")
        assert event.subject is not None
        assert MAIL not in repr(event)

    def test_a_stream_read_elsewhere_is_still_its_callers(self, bench, events):
        """A run started for a customer and read outside of that context is the customer's."""
        with context(tenant="acme", customer="c-42"):
            stream = graph_of(draft=calling(Scripted())).stream_events(
                {"said": []}, version="v3", transformers=[UsageFactory(bench.priced(PRICES))]
            )
        list(stream)
        (event,) = events()

        assert event.tenant == "acme"
        assert event.subject is not None

    def test_a_run_without_a_span_has_one_trace(self, run, mode, events):
        """Where the caller has no trace, the calls of a run share one, and two runs do not."""
        for _time in range(2):
            run(mode, graph_of(a=calling(Scripted()), b=calling(Scripted())))
        traces = [each.trace.trace_id for each in events()]

        assert traces[0] == traces[1] != traces[2] == traces[3]

    def test_a_label_that_cannot_be_redacted_is_not_told(self, bench, events):
        """If the redactor fails, the tokens are counted and the labels are withheld."""

        class Broken:
            def begin(self, **_about):
                raise RuntimeError(MAIL)

        broken = replace(bench, redactor=Broken())
        with context(tenant=MAIL):
            stream = graph_of(draft=calling(Scripted())).stream_events(
                {"said": []}, version="v3", transformers=[UsageFactory(broken.accounting)]
            )
            list(stream)
        (event,) = events()

        assert event.usage.input_tokens == 100
        assert MAIL not in repr(event)


class TestClocks:
    def test_langchain_is_told_once(self, bench):
        """However many factories are made, one handler listens."""
        UsageFactory(bench.priced(PRICES))
        UsageFactory(bench.priced(PRICES))
        handlers = CallbackManager.configure().handlers

        assert sum(isinstance(each, GraphCallbacks) for each in handlers) == 1


class TestHarmless:
    def test_the_run_shows_its_totals(self, run, mode):
        """``run.extensions["usage"]`` has the totals, by node, as the run goes on."""
        stream = run(mode, graph_of(a=calling(Scripted()), b=calling(Plain())))
        totals = stream.extensions["usage"]

        assert (totals.calls, totals.input_tokens, totals.output_tokens) == (2, 200, 50)
        assert totals.cost_usd == pytest.approx(2 * COST)
        assert totals.by_node["a"].reasoning_tokens == 12

    def test_the_reader_sees_what_it_saw_before(self, run, bench):
        """No event is held back, added or changed."""

        def seen(transformers):
            graph = graph_of(draft=calling(Scripted()))
            stream = graph.stream_events({"said": []}, version="v3", transformers=transformers)
            return [(each["method"], each["seq"]) for each in stream], stream.output

        assert seen([UsageFactory(bench.priced(PRICES))]) == seen([])

    def test_an_error_of_ours_stays_ours(self, run, mode, bench, monkeypatch, events):
        """Whatever goes wrong in the bridge, the run ends as it would have, and it is counted."""

        def broken(*_args):
            raise RuntimeError(MAIL)

        monkeypatch.setattr(Runs, "claim", broken)
        monkeypatch.setattr(Runs, "close", broken)
        stream = run(mode, graph_of(draft=calling(Scripted())))

        assert stream.extensions["usage"].calls == 0
        assert bench.faults.counts["stream.process"] > 0
        assert bench.faults.counts["stream.finalize"] > 0
        assert events() == []

    @pytest.mark.parametrize("name", ["begin", "begin_chain", "begin_node", "end", "recorded"])
    def test_an_error_in_a_callback_stays_ours(self, name, run, mode, bench, monkeypatch):
        """Whatever goes wrong in a callback, the run ends as it would have, and it is counted."""

        def broken(*_args):
            raise RuntimeError(MAIL)

        monkeypatch.setattr(Runs, name, broken)
        stream = run(mode, graph_of(draft=calling(Scripted())))

        assert stream.extensions["usage"].calls == 0
        assert bench.faults.counts["graph.callback"] > 0

    def test_a_run_that_is_not_found_says_so(self, run, mode, monkeypatch, caplog):
        """On the stream, and once in the log: its totals are no count of anything."""
        monkeypatch.setattr(Runs, "begin_chain", lambda *_args: None)
        langgraph_stream._warn_of_uncounted_run.cache_clear()
        streams = [run(mode, graph_of(draft=calling(Scripted()))) for _ in range(2)]

        assert [each.extensions["usage"].is_counted for each in streams] == [False, False]
        assert caplog.text.count("none of its model calls is counted") == 1

    def test_a_run_that_is_found_says_so(self, run, mode, caplog):
        """Its totals are a count."""
        assert run(mode, graph_of(draft=calling(Scripted()))).extensions["usage"].is_counted
        assert "is counted" not in caplog.text

    def test_a_meter_that_cannot_be_made_costs_the_figures_only(self, bench, monkeypatch, events):
        """A run is started even if it cannot be counted."""
        monkeypatch.setattr(langgraph_stream, "Meter", None)
        stream = graph_of(draft=calling(Scripted())).stream_events(
            {"said": []}, version="v3", transformers=[UsageFactory(bench.priced(PRICES))]
        )

        assert list(stream)
        assert bench.faults.counts["stream.begin"] == 1

    def test_interrupts_of_the_process_pass(self, bench, monkeypatch):
        """A KeyboardInterrupt in a hook is not ours to keep."""
        transformer = UsageFactory(bench.priced(PRICES))(())

        def interrupted(*_args):
            raise KeyboardInterrupt

        monkeypatch.setattr(Runs, "claim", interrupted)
        with pytest.raises(KeyboardInterrupt):
            transformer.process({"method": "tasks", "params": {"data": {"id": "t-1"}}})

    def test_a_reader_that_leaves_loses_nothing(self, bench, events):
        """A run that is left in the middle of a message tells of it when it is closed."""
        stream = graph_of(draft=calling(Scripted())).stream_events(
            {"said": []}, version="v3", transformers=[UsageFactory(bench.priced(PRICES))]
        )
        with stream:
            for each in stream:
                if each["method"] == "messages":
                    break

        assert len(events()) == 1
        assert events()[0].usage.node == "draft"

    def test_switched_off_it_does_nothing(self):
        """Without a bench the transformer lets everything pass."""
        stream = graph_of(draft=calling(Scripted())).stream_events(
            {"said": []}, version="v3", transformers=[UsageFactory(None)]
        )

        assert list(stream)
        assert "usage" not in stream.extensions

    def test_a_price_file_that_makes_no_sense_is_refused_at_once(self, bench, tmp_path):
        """It is said when the factory is made, never inside a run."""
        path = tmp_path / "prices.json"
        path.write_text("{", "utf-8")
        with pytest.raises(PriceFileError, match="not JSON"):
            Prices.load(path)
