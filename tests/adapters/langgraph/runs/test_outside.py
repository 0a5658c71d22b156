"""Model calls that are part of no watched run: they are counted, and budgets hold them back."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import Any, TypedDict

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import Budget, BudgetExceededError, context, feature
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S

TOKENS = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}


class Counting(BaseChatModel):
    """A model that reports its tokens."""

    @property
    def _llm_type(self):
        return "counting"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        message = AIMessage("There.", usage_metadata=TOKENS)
        return ChatResult(generations=[ChatGeneration(message=message)])


MODEL = Counting()
SAID = [HumanMessage("Where is it?")]


class State(TypedDict, total=False):
    said: str


def in_a_pool():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(MODEL.invoke, SAID).result()


def in_a_thread():
    raised = []

    def call():
        try:
            MODEL.invoke(SAID)
        except BudgetExceededError as error:
            raised.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def in_a_context():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(copy_context().run, MODEL.invoke, SAID).result()


def generated():
    MODEL.generate([SAID])


def generated_in_a_thread():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(MODEL.generate, [SAID]).result()


def in_a_loop_of_its_own():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(MODEL.ainvoke(SAID))).result()


WAYS = [
    in_a_pool,
    in_a_thread,
    in_a_context,
    generated,
    generated_in_a_thread,
    in_a_loop_of_its_own,
]
OF_THE_NODE = [in_a_context, generated]


def graph_that(calls) -> Any:
    builder = StateGraph(State)

    def draft(_state):
        calls()
        return {"said": "There."}

    builder.add_node("draft", draft)
    builder.add_edge(START, "draft")
    return builder.compile()


def chats(scope, sink):
    scope.flush(GIVE_UP_S)
    return [each for each in sink.events if each.operation == "chat"]


@pytest.mark.parametrize("calls", WAYS)
def test_a_call_of_a_node_is_counted(calls):
    """Once, with its tokens, from whatever thread it is made."""
    with scope_for_tests() as (scope, sink):
        scope.runnable(graph_that(calls)).invoke({})

        assert [each.usage.input_tokens for each in chats(scope, sink)] == [3]


@pytest.mark.parametrize("calls", OF_THE_NODE)
def test_a_call_in_the_context_of_a_node_is_the_nodes(calls):
    """Its run is around it, whether LangChain says so or not."""
    with scope_for_tests() as (scope, sink):
        scope.runnable(graph_that(calls)).invoke({})

        assert [each.usage.node for each in chats(scope, sink)] == ["draft"]


@pytest.mark.parametrize("calls", [each for each in WAYS if each not in OF_THE_NODE])
def test_what_belongs_to_nobody_is_said(calls):
    """A thread without a context is no customer's and no node's: that is counted."""
    with scope_for_tests() as (scope, sink):
        scope.runnable(graph_that(calls)).invoke({})
        (call,) = chats(scope, sink)

        assert (call.usage.node, call.subject) == (None, None)
        said = next(
            each.detail for each in scope.health(GIVE_UP_S).checks if each.name == "context"
        )
        assert "1 model calls began in threads without a context" in said


def test_a_forked_child_counts_none_of_its_parents():
    """What belongs to nobody there is told by the parent alone."""
    calls = next(each for each in WAYS if each not in OF_THE_NODE)
    with scope_for_tests() as (scope, _sink):
        scope.runnable(graph_that(calls)).invoke({})
        scope._parts.accounting.forked()

        told = [each.detail for each in scope.health(GIVE_UP_S).checks if each.name == "context"]
        assert not any("model calls" in each for each in told)


@pytest.mark.parametrize("calls", WAYS)
def test_a_call_outside_of_any_graph_is_counted(calls):
    """Once the scope watches any."""
    with scope_for_tests() as (scope, sink):
        scope.usage()
        calls()

        assert [each.usage.input_tokens for each in chats(scope, sink)] == [3]


def test_a_call_outside_is_its_contexts():
    """The customer and feature of the code that makes it."""
    with scope_for_tests() as (scope, sink):
        scope.usage()
        with context(customer="c-17", feature="reply"):
            MODEL.invoke(SAID)
        (call,) = chats(scope, sink)

        assert call.feature == "reply"
        assert call.subject is not None
        assert "context" not in {each.name for each in scope.health(GIVE_UP_S).checks}


def test_a_graph_that_is_not_watched_is_no_run():
    """Its model calls are counted; its nodes are the application's own."""
    with scope_for_tests() as (scope, sink):
        scope.usage()
        graph_that(generated).invoke({})
        scope.flush(GIVE_UP_S)

        assert [each.operation for each in sink.events] == ["chat"]


def test_a_scope_that_watches_nothing_counts_nothing():
    """Nobody asked it to."""
    with scope_for_tests() as (scope, sink):
        MODEL.invoke(SAID)

        assert chats(scope, sink) == []


def test_a_scope_that_closed_counts_nothing():
    """Not even while it is held."""
    with scope_for_tests() as (scope, sink):
        scope.usage()
    MODEL.invoke(SAID)

    assert sink.events == []


def test_a_call_of_a_memory_operation_is_told_by_its_store():
    """Not twice."""
    with scope_for_tests() as (scope, sink):
        scope.usage()

        @scope.observe(store="crm", operation="create_memory")
        def remember(text):
            return MODEL.invoke(text).content

        remember("tea")

        assert chats(scope, sink) == []


@pytest.mark.parametrize("calls", WAYS)
def test_a_budget_holds_it_back(calls):
    """What is counted can be stopped, and nothing else."""
    with scope_for_tests(budgets=[Budget(tokens=7, on_exceeded="stop")]) as (scope, _sink):
        graph = scope.runnable(graph_that(calls))
        graph.invoke({})
        with pytest.raises(BudgetExceededError):
            graph.invoke({})
        (status,) = scope.budgets

        assert (status.calls, status.spent, status.refused_calls) == (1, 7, 1)


def test_a_budget_of_another_scope_holds_nothing_back_that_it_does_not_count():
    """A graph is its own scope's: the other one never hears of its calls."""
    spent = Budget(tokens=7, on_exceeded="stop")
    with scope_for_tests(budgets=[spent]) as (other, _), scope_for_tests() as (scope, sink):
        other.runnable(graph_that(generated)).invoke({})
        graph = scope.runnable(graph_that(generated))
        graph.invoke({})

        assert len(chats(scope, sink)) == 1
        assert other.budgets[0].refused_calls == 0


@pytest.mark.parametrize("given", [None, "r-9"])
def test_all_of_a_graphs_run_has_its_thread(given):
    """Graph, nodes, model calls, and what stores do, unless the caller names another run."""
    with scope_for_tests() as (scope, sink):
        store = scope.store(InMemoryStore())

        def calls():
            store.search(("facts",))
            MODEL.invoke(SAID)

        graph = scope.runnable(graph_that(calls))
        with context(run=given):
            graph.invoke({}, {"configurable": {"thread_id": "t-1"}})
        scope.flush(GIVE_UP_S)

        assert {each.operation: each.run for each in sink.events} == dict.fromkeys(
            ["search_memory", "chat", "execute_node", "invoke_agent"], given or "t-1"
        )


def with_config(config):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(MODEL.invoke, SAID, config).result()


def batched_with_config(config):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(MODEL.batch, [SAID], config).result()


def in_a_loop_with_config(config):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(MODEL.ainvoke(SAID, config))).result()


def in_a_chain_with_config(config):
    with ThreadPoolExecutor(1) as pool:
        pool.submit((RunnableLambda(lambda said: said) | MODEL).invoke, SAID, config).result()


WITH_CONFIG = [with_config, batched_with_config, in_a_loop_with_config, in_a_chain_with_config]


def decorated(calls):
    @feature("reply")
    def draft(_state, config: RunnableConfig):
        calls(config)
        return {"said": "There."}

    return draft


def in_a_context_of_its_own(calls):
    def draft(_state, config: RunnableConfig):
        with context(feature="reply"):
            calls(config)
        return {"said": "There."}

    return draft


def in_nested_contexts(calls):
    def draft(_state, config: RunnableConfig):
        with context(customer="c-42"), context(feature="reply"):
            calls(config)
        return {"said": "There."}

    return draft


@pytest.mark.parametrize("says", [decorated, in_a_context_of_its_own, in_nested_contexts])
@pytest.mark.parametrize("calls", WITH_CONFIG)
def test_a_thread_that_is_passed_the_config_works_for_the_feature_of_its_node(calls, says):
    """A thread has no context of its own: what the code of the node has entered counts."""
    spent = Budget(feature="reply", tokens=7, on_exceeded="stop")
    builder = StateGraph(State)
    builder.add_node("draft", says(calls))
    builder.add_edge(START, "draft")
    with scope_for_tests(budgets=[spent]) as (scope, sink):
        graph = scope.runnable(builder.compile())
        graph.invoke({})
        with pytest.raises(BudgetExceededError):
            graph.invoke({})

        first, _refused = chats(scope, sink)
        assert (first.usage.node, first.feature) == ("draft", "reply")
        assert scope.budgets[0].refused_calls == 1


def test_of_contexts_side_by_side_none_is_taken_for_a_threads():
    """It cannot be told which of them the thread works for."""

    async def draft(_state, config: RunnableConfig):
        both = asyncio.Barrier(2)

        async def reply(name):
            with context(feature=name):
                await both.wait()
                await asyncio.to_thread(Context().run, MODEL.invoke, SAID, config)
                await both.wait()

        await asyncio.gather(reply("one"), reply("two"))
        return {"said": "There."}

    builder = StateGraph(State)
    builder.add_node("draft", draft)
    builder.add_edge(START, "draft")
    with scope_for_tests() as (scope, sink):
        asyncio.run(scope.runnable(builder.compile()).ainvoke({}))

        assert [(each.usage.node, each.feature) for each in chats(scope, sink)] == [
            ("draft", None)
        ] * 2
