"""
What the bridge adds to a graph, counted and not timed: noise cannot break it, a regression does.

Counted is what our callbacks do on the thread of the node, with one sink. Budgets are what was seen
on Python 3.13, and a tenth; a change that needs more says why it is worth it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict
from uuid import uuid4

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult, LLMResult
from langchain_core.tracers._streaming import _StreamingCallbackHandler
from langgraph.graph import START, StateGraph

from mnemoscope import adapters
from mnemoscope.adapters.langgraph.runs.callbacks import GraphCallbacks, graph_callbacks
from mnemoscope.adapters.langgraph.runs.graph import runnable
from mnemoscope.adapters.langgraph.runs.runs import Runs
from mnemoscope.adapters.langgraph.runs.stream import UsageFactory
from mnemoscope.memory import context
from mnemoscope.telemetry.pricing.prices import Price, Prices
from tests.kit.call_costs import Cost, cost_of, counted_here, functions_of

PRICES = Prices({"scripted-1": Price(input=1.0, output=2.0)})
OURS = str(Path(next(iter(adapters.__path__))))
USED: Any = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
MESSAGE = AIMessage("Hello", usage_metadata=USED, response_metadata={"model_name": "scripted-1"})
ANSWER = LLMResult(generations=[[ChatGeneration(message=MESSAGE)]])

pytestmark = [
    counted_here,
    pytest.mark.filterwarnings("ignore:The v3 streaming protocol"),
]


class ScriptedRun:
    """
    Tells callbacks what LangChain would tell them of one run of a graph.

    They are not the process's own, which do more once a scope with rules or LangSmith was there.
    """

    def __init__(self, bench):
        accounting = bench.priced(PRICES)
        self._callbacks, self._factory = GraphCallbacks(Runs()), UsageFactory(accounting)
        self._callbacks.report_to(accounting)
        self._meter, self.graph_id = self._factory.meter(), uuid4()
        self._begin(self._meter, self.graph_id)
        self.node_id = uuid4()
        self._begin_node(self.node_id)
        self.call_id = uuid4()
        self._begin_call(self.call_id)

    def _begin(self, meter, run_id):
        self._callbacks.runs.expect(run_id, meter)
        about = {"ls_integration": "langgraph"}
        self._callbacks.on_chain_start(None, {}, run_id=run_id, metadata=about, name="LangGraph")

    def _begin_node(self, run_id):
        about = {"langgraph_node": "draft", "langgraph_checkpoint_ns": f"draft:{run_id}"}
        self._callbacks.on_chain_start(
            None, {}, run_id=run_id, parent_run_id=self.graph_id, metadata=about, name="draft"
        )

    def _begin_call(self, run_id):
        self._callbacks.on_chat_model_start(
            None, [[]], run_id=run_id, parent_run_id=self.node_id, metadata={"thread_id": "t-1"}
        )

    def graph(self):
        """A graph that begins, is watched, and ends."""
        meter, run_id = self._factory.meter(), uuid4()
        self._begin(meter, run_id)
        self._callbacks.on_chain_end({}, run_id=run_id)
        self._callbacks.runs.close(meter)

    def node(self):
        """A node that begins and ends."""
        run_id = uuid4()
        self._begin_node(run_id)
        self._callbacks.on_chain_end({}, run_id=run_id)

    def call(self):
        """A model call that begins and ends, with its usage."""
        run_id = uuid4()
        self._begin_call(run_id)
        self._callbacks.on_llm_end(ANSWER, run_id=run_id)

    def close(self):
        """End what was begun here."""
        self._callbacks.runs.close(self._meter)


@pytest.fixture
def told(bench):
    with context(tenant="acme", customer="c-1", feature="reply-draft"):
        telling = ScriptedRun(bench)
        yield telling
    telling.close()


@pytest.mark.parametrize(
    ("part", "budget"),
    [
        pytest.param("graph", Cost(81, 1670), id="graph"),
        # 40 of them seal the place of the node, without which no route can be made again.
        pytest.param("node", Cost(49, 1250), id="node"),
        pytest.param("call", Cost(86, 1990), id="call"),
    ],
)
def test_a_part_of_a_run_stays_within_its_budget(told, part, budget):
    """From its beginning to its event, handed to the drain."""
    cost = cost_of(getattr(told, part))

    assert cost.functions <= budget.functions
    assert cost.instructions <= budget.instructions


def test_langchain_sees_at_once_that_we_tap_no_stream():
    """It asks that of every handler, before each model call, and looks through all its classes."""
    callbacks = graph_callbacks()

    assert not isinstance(callbacks, _StreamingCallbackHandler)
    assert cost_of(lambda: isinstance(callbacks, _StreamingCallbackHandler)).instructions <= 280


class State(TypedDict):
    said: str


class Streaming(BaseChatModel):
    """A model that streams as many chunks as it is told to."""

    chunks: int

    @property
    def _llm_type(self):
        return "streaming"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Hello"))])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        for _ in range(self.chunks):
            yield ChatGenerationChunk(message=AIMessageChunk("Hello"))


def streaming(chunks):
    model = Streaming(chunks=chunks)
    builder = StateGraph(State)
    builder.add_node("draft", lambda _state: {"said": str(model.invoke("hi").content)})
    builder.add_edge(START, "draft")
    return builder.compile()


def read_v3(graph, **given):
    return sum(1 for _event in graph.stream_events({"said": ""}, version="v3", **given))


def read_v2(graph):
    return sum(1 for _part in graph.stream({"said": ""}, stream_mode="messages"))


@pytest.mark.parametrize(("read", "most"), [(read_v3, 1), (read_v2, 1)])
def test_an_event_of_a_stream_enters_next_to_nothing_of_ours(bench, read, most):
    """One look at whether the model has spoken."""
    graphs = [runnable(streaming(chunks), bench.priced(PRICES)) for chunks in (20, 120)]

    few, many = (functions_of(lambda each=each: read(each), OURS) for each in graphs)

    assert many - few <= most * 100


def test_an_event_of_a_stream_that_a_transformer_sees_enters_as_little(bench):
    """One look by the callbacks, one by the transformer."""
    factory, graphs = (
        UsageFactory(bench.priced(PRICES)),
        [streaming(chunks) for chunks in (20, 120)],
    )

    few, many = (
        functions_of(lambda each=each: read_v3(each, transformers=[factory]), OURS)
        for each in graphs
    )

    assert many - few <= 2 * 100
