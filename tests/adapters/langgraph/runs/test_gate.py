"""The gate: a spent budget stops the next model call, before it is made, and nothing else."""

from __future__ import annotations

import asyncio
import gc
import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.callbacks import CallbackManager
from langchain_core.language_models import FakeListLLM
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy

from mnemoscope.adapters.langgraph.runs.budget_gate import guard_models
from mnemoscope.adapters.langgraph.runs.gate import _GateHandler, gate
from mnemoscope.adapters.langgraph.runs.stream import UsageFactory
from mnemoscope.memory import Budget, BudgetExceeded, Scope, feature
from mnemoscope.memory.api import Status, Usage
from mnemoscope.memory.budgets.budgets import Budgets
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.event.budget_event import BudgetEvent
from mnemoscope.telemetry.event.node_run import NodeRun
from mnemoscope.telemetry.pricing.prices import Price, Prices
from tests.kit.patience import GIVE_UP_S

PRICES = Prices({"scripted-1": Price(input=10_000, output=0)})
USED = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105}
COST = 1.0

pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")


class Scripted(BaseChatModel):
    """A model that costs a dollar a call, and counts how often it was asked."""

    asked: list[int] = []  # noqa: RUF012 - pydantic copies it
    named: str = "scripted-1"

    @property
    def _llm_type(self):
        return "scripted"

    def _get_ls_params(self, stop=None, **kwargs):
        return {"ls_provider": "fakeco", "ls_model_name": self.named, "ls_model_type": "chat"}

    def _about(self):
        return {"model_name": self.named, "model_provider": "fakeco"}

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.asked.append(1)
        message = AIMessage("Hello", usage_metadata=USED, response_metadata=self._about())
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        self.asked.append(1)
        yield ChatGenerationChunk(message=AIMessageChunk("Hel", response_metadata=self._about()))
        yield ChatGenerationChunk(message=AIMessageChunk("lo", usage_metadata=USED))


class State(TypedDict):
    said: Annotated[list[Any], operator.add]


def calling(model, *, times=1, name="draft"):
    @feature(name)
    def node(_state):
        return {"said": [str(model.invoke("hi").content) for _ in range(times)]}

    return node


def graph_of(node, **options):
    builder = StateGraph(State)
    builder.add_node("node", node, **options)
    builder.add_edge(START, "node")
    return builder.compile()


@pytest.fixture(autouse=True)
def nobody_asked():
    """Begin and end with a gate that watches nothing: a failed test keeps its objects alive."""
    gate().clear()
    yield
    gate().clear()


@pytest.fixture(params=["sync", "async"])
def run(request, bench):
    """Return a function that runs a graph to its end, sync and async."""

    def streamed(graph, budgets):
        bench.budgets = budgets
        options = {"version": "v3", "transformers": [UsageFactory(bench.priced(PRICES))]}
        stream = graph.stream_events({"said": []}, **options)
        list(stream)
        return stream.output

    async def astreamed(graph, budgets):
        bench.budgets = budgets
        options = {"version": "v3", "transformers": [UsageFactory(bench.priced(PRICES))]}
        stream = await graph.astream_events({"said": []}, **options)
        async for _event in stream:
            pass
        return await stream.output()

    if request.param == "sync":
        return streamed
    return lambda graph, budgets: asyncio.run(astreamed(graph, budgets))


def stopping(usd=2.0, **given):
    return Budgets([Budget(**{"feature": "draft", "usd": usd, "on_exceeded": "stop", **given})])


def test_a_spent_budget_stops_the_next_call_and_not_the_one_under_way(run):
    """Two dollars pay for two calls of a dollar; the third is not made, and the node is told."""
    model, budgets = Scripted(), stopping(2.0)
    run(graph_of(calling(model)), budgets)
    run(graph_of(calling(model)), budgets)

    with pytest.raises(BudgetExceeded, match="draft per hour"):
        run(graph_of(calling(model)), budgets)
    assert len(model.asked) == 2
    assert budgets.status()[0].refused_calls == 1


def test_it_is_asked_in_whatever_order_langchain_tells_its_handlers(monkeypatch, run):
    """Where configs are merged, as for a model with retries, the order is lost."""
    merge = CallbackManager.merge

    def merge_gates_first(self, other):
        merged = merge(self, other)
        merged.handlers.sort(key=lambda each: not isinstance(each, _GateHandler))
        return merged

    monkeypatch.setattr(CallbackManager, "merge", merge_gates_first)
    model, budgets = Scripted(), stopping(1.0)
    run(graph_of(calling(model.with_retry(stop_after_attempt=1))), budgets)

    with pytest.raises(BudgetExceeded):
        run(graph_of(calling(model.with_retry(stop_after_attempt=1))), budgets)
    assert len(model.asked) == 1


def test_other_features_go_on(run):
    """A budget stops what it covers."""
    model, budgets = Scripted(), stopping(1.0)
    run(graph_of(calling(model)), budgets)

    assert run(graph_of(calling(model, name="search")), budgets)["said"]


def test_an_alert_stops_nothing(run):
    """By default a budget tells, and the run goes on."""
    model, budgets = Scripted(), stopping(1.0, on_exceeded="alert")
    for _run in range(3):
        run(graph_of(calling(model)), budgets)

    assert len(model.asked) == 3


def test_a_retry_policy_does_not_try_again(run):
    """LangGraph's default policy leaves the error alone."""
    model, budgets = Scripted(), stopping(1.0)
    run(graph_of(calling(model)), budgets)
    policy = RetryPolicy(max_attempts=3, initial_interval=0.001)

    with pytest.raises(BudgetExceeded):
        run(graph_of(calling(model), retry_policy=policy), budgets)
    assert budgets.status()[0].refused_calls == 1


def test_a_fallback_to_another_model_passes_a_budget_of_the_first(run):
    """A budget for a dear model leads to the cheap one, where the graph has one to fall back to."""
    dear, cheap = Scripted(), Scripted(named="scripted-2")
    budgets = stopping(1.0, feature=None, model="scripted-1")
    node = calling(dear.with_fallbacks([cheap]))
    run(graph_of(node), budgets)
    run(graph_of(node), budgets)

    assert (len(dear.asked), len(cheap.asked)) == (1, 1)


def test_a_budget_that_cannot_be_read_stops_nobody(run, bench):
    """An error of ours is noted, and the call is made."""
    model, budgets = Scripted(), stopping(1.0)
    budgets.admit = None  # so that asking fails
    run(graph_of(calling(model)), budgets)

    assert len(model.asked) == 1
    assert bench.faults.counts["budgets.refusal"] == 1


@pytest.fixture
def spent(bench):
    """Return a budget with nothing left, that the gate watches."""
    bench.budgets = budgets = Budgets([Budget(tokens=1, on_exceeded="stop")])
    UsageFactory(bench.priced(PRICES))
    budgets.add(Scope(), Usage(model="m", input_tokens=1))
    return budgets


def test_every_way_to_call_a_model_is_stopped(spent):
    """Invoke, stream and batch, sync and async, and models that complete text."""

    async def consume(stream):
        return [each async for each in stream]

    model, text = Scripted(), FakeListLLM(responses=["a"])
    for call in (
        lambda: model.invoke("hi"),
        lambda: list(model.stream("hi")),
        lambda: model.batch(["hi"]),
        lambda: asyncio.run(model.ainvoke("hi")),
        lambda: asyncio.run(consume(model.astream("hi"))),
        lambda: text.invoke("hi"),
        lambda: asyncio.run(text.ainvoke("hi")),
    ):
        with pytest.raises(BudgetExceeded):
            call()
    assert model.asked == []


def test_a_memory_operation_is_not_stopped(spent):
    """What a store's client asks a model for is counted: to refuse it would lose a memory."""
    model = Scripted()
    with scope_for_tests() as (scope, _sink):

        @scope.observe(store="crm", operation="create_memory")
        def remember(text):
            return model.invoke(text).content

        assert remember("tea")
    assert len(model.asked) == 1


def test_a_budget_goes_with_its_scope(bench):
    """A scope that is gone stops nobody."""
    budgets = stopping()
    guard_models(budgets, bench.faults)
    assert len(gate()._budgets) == 1
    del budgets
    gc.collect()

    assert len(gate()._budgets) == 0
    assert not gate()


def test_a_budget_ends_with_its_scope(bench):
    """A scope that is closed counts nothing any more, and stops nobody, though it is held."""
    model = Scripted(named="gpt-4o")
    budget = Budget(feature="draft", tokens=100, on_exceeded="stop")
    with scope_for_tests(budgets=[budget]) as (scope, _sink):
        graph = scope.runnable(graph_of(calling(model)))
        graph.invoke({"said": []})
        with pytest.raises(BudgetExceeded):
            graph.invoke({"said": []})
    graph.invoke({"said": []})

    assert len(model.asked) == 2
    assert scope.budgets[0].refused_calls == 1


def test_a_call_that_is_not_made_is_told_of_and_not_counted(run, events):
    """Whatever its end, a call is one event: rejected, at no cost, because of the budget."""
    model, budgets = Scripted(), stopping(1.0)
    run(graph_of(calling(model)), budgets)
    with pytest.raises(BudgetExceeded):
        run(graph_of(calling(model)), budgets)
    chats = [each for each in events() if each.operation == "chat"]

    assert [each.status for each in chats] == [Status.OK, Status.REJECTED]
    assert chats[1].error == "mnemoscope.memory.errors.BudgetExceededError"
    assert (budgets.status()[0].calls, budgets.status()[0].spent) == (1, 1.0)


def test_a_feature_by_node_name_is_stopped_as_well(bench):
    """The feature that a call is attributed to is the one that is asked for."""
    model = Scripted()
    bench.budgets = stopping(1.0, feature="by-name")
    factory = UsageFactory(bench.priced(PRICES), features={"node": "by-name"})
    graph = graph_of(lambda _state: {"said": [str(model.invoke("hi").content)]})

    def once():
        stream = graph.stream_events({"said": []}, version="v3", transformers=[factory])
        return stream.output

    once()
    with pytest.raises(BudgetExceeded):
        once()
    assert len(model.asked) == 1


def test_a_loop_shows_how_often_and_at_what_cost(run, events):
    """Each run of a node says which it was, and what the model calls in it cost."""
    model = Scripted()
    builder = StateGraph(State)
    builder.add_node("think", calling(model, times=2))
    builder.add_edge(START, "think")
    builder.add_conditional_edges(
        "think", lambda state: "think" if len(state["said"]) < 6 else "__end__"
    )
    run(builder.compile(), Budgets())
    nodes = [each for each in events() if each.operation == "execute_node"]

    parts = [each.part(NodeRun) for each in nodes]
    assert [each.method for each in nodes] == ["think"] * 3
    assert [(each.iteration, each.inner_cost_usd) for each in parts] == [
        (1, 2 * COST),
        (2, 2 * COST),
        (3, 2 * COST),
    ]


def ainvoked(graph):
    return asyncio.run(graph.ainvoke({"said": []}))


def streamed(graph):
    return list(graph.stream({"said": []}))


def aevents(graph):
    async def drain():
        return [each async for each in graph.astream_events({"said": []}, version="v2")]

    return asyncio.run(drain())


@pytest.mark.parametrize(
    "way", [lambda graph: graph.invoke({"said": []}), ainvoked, streamed, aevents]
)
def test_a_wrapped_graph_is_stopped_however_it_is_run(way):
    """`Mnemoscope.runnable` counts and stops without the third version of streaming."""
    model = Scripted(named="gpt-4o")
    budget = Budget(feature="draft", tokens=100, on_exceeded="stop")
    with scope_for_tests(budgets=[budget]) as (scope, sink):
        graph = scope.runnable(graph_of(calling(model)))
        way(graph)
        with pytest.raises(BudgetExceeded):
            way(graph)
        scope.flush(GIVE_UP_S)
        (status,) = scope.budgets

    assert len(model.asked) == 1
    assert (status.spent, status.refused_calls) == (105, 1)
    assert [each.operation for each in sink.events if each.part(BudgetEvent)] == [
        "budget_alert",
        "budget_exceeded",
    ]


def test_a_call_that_is_under_way_is_not_touched(run):
    """Somebody else spends the last of the budget while a model speaks: it says all it has to."""
    budgets = stopping(1.0)

    class Overtaken(Scripted):
        def _stream(self, *args, **kwargs):
            for chunk in super()._stream(*args, **kwargs):
                budgets.add(Scope(feature="draft"), Usage(model="other", cost_usd=1.0))
                yield chunk

    said = run(graph_of(calling(Overtaken())), budgets)["said"]
    (status,) = budgets.status()

    assert "Hel" in said[0]
    assert "lo" in said[0]
    assert status.spent == 2 * 1.0 + COST
    assert status.refused_calls == 0
