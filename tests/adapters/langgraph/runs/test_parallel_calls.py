"""Calls that are made at once: a budget keeps something back for those that are under way."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel, FakeListLLM
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from mnemoscope.adapters.langgraph.runs.callbacks import graph_callbacks
from mnemoscope.adapters.langgraph.runs.gate import gate
from mnemoscope.memory import Budget, BudgetExceeded
from mnemoscope.memory.api import Status
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S, until

TOKENS = {"input_tokens": 1, "output_tokens": 0, "total_tokens": 1}


class Asked(list[int]):
    """Keeps its identity where pydantic would copy a list."""


class Slow(BaseChatModel):
    """A model that uses a token a call, and takes its time, so that calls overlap."""

    asked: Any
    seconds: float = 0.004
    failures: Any = None
    inner: Any = None

    @property
    def _llm_type(self):
        return "slow"

    def _answer(self):
        self.asked.append(1)
        if self.failures:
            self.failures.pop()
            raise ConnectionError
        return AIMessage("There.", usage_metadata=TOKENS)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        if self.inner is not None:
            self.inner.invoke(messages)
        threading.Event().wait(self.seconds)
        return ChatResult(generations=[ChatGeneration(message=self._answer())])

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        if self.inner is not None:
            return await super()._agenerate(messages)  # in another thread
        await asyncio.sleep(self.seconds)
        return ChatResult(generations=[ChatGeneration(message=self._answer())])


class Streaming(Slow):
    """The same, chunk by chunk."""

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        message = self._answer()
        yield ChatGenerationChunk(message=AIMessageChunk("The"))
        yield ChatGenerationChunk(
            message=AIMessageChunk("re", usage_metadata=message.usage_metadata)
        )


@pytest.fixture(autouse=True)
def nobody_asked():
    """Begin and end with a gate that watches nothing."""
    gate().clear()
    yield
    gate().clear()


@pytest.fixture
def nobody_waits(monkeypatch):
    """Fail where a call waits."""

    def fail(_self):
        raise AssertionError("a call waits")

    monkeypatch.setattr("mnemoscope.memory.run_observers.UndecidedError.block", fail)
    monkeypatch.setattr("mnemoscope.memory.run_observers.UndecidedError.pause", fail)


def limited(tokens=10, **given):
    return scope_for_tests(budgets=[Budget(tokens=tokens, on_exceeded="stop", **given)])


def in_threads(model):
    return model.batch(["hi"] * 50, {"max_concurrency": 50}, return_exceptions=True)


def in_tasks(model):
    return asyncio.run(model.abatch(["hi"] * 50, return_exceptions=True))


def in_threads_with_loops(model):
    with ThreadPoolExecutor(50) as pool:
        calls = [pool.submit(lambda: asyncio.run(model.ainvoke("hi"))) for _ in range(50)]
    return [each.exception() or each.result() for each in calls]


def in_streams(model):
    async def read():
        return [each async for each in model.astream("hi")]

    async def read_all():
        return await asyncio.gather(*(read() for _ in range(50)), return_exceptions=True)

    return asyncio.run(read_all())


@pytest.mark.parametrize("at_once", [in_threads, in_tasks, in_threads_with_loops, in_streams])
def test_fifty_calls_at_once_stay_within_a_budget_of_ten(at_once):
    """The first tells what a call uses; nine more are made; the others wait, and are refused."""
    with limited() as (scope, _sink):
        scope.usage()
        model = Slow(asked=Asked())
        answers = at_once(model)
        (status,) = scope.budgets

    assert len(model.asked) == 10
    assert sum(isinstance(each, BudgetExceeded) for each in answers) == 40
    assert (status.spent, status.refused_calls) == (10, 40)


def test_calls_that_fail_tell_nothing_of_what_calls_use():
    """The next one is waited for instead."""
    with limited() as (scope, _sink):
        scope.usage()
        model = Slow(asked=Asked(), failures=[1, 1])
        answers = in_threads(model)

    assert sum(isinstance(each, ConnectionError) for each in answers) == 2
    assert len(model.asked) == 12


def test_calls_of_unknown_cost_do_not_wait_for_ever(nobody_waits):
    """What one of them used is not known: nothing is kept back for the others."""
    budget = Budget(usd=1, on_exceeded="stop")
    with scope_for_tests(budgets=[budget]) as (scope, _sink):
        scope.usage()
        model = Slow(asked=Asked())
        model.invoke("hi")
        in_threads(model)

    assert len(model.asked) == 51


def test_who_says_so_does_not_wait(nobody_waits):
    """Then calls made at once exceed the budget together."""
    with limited(wait_s=0) as (scope, _sink):
        scope.usage()
        model = Slow(asked=Asked(), seconds=0.05)
        in_tasks(model)

    assert len(model.asked) == 50


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_call_inside_of_a_call_does_not_wait_for_it(nobody_waits, way):
    """As of a model that asks another one: each would wait for the other."""
    with limited() as (scope, _sink):
        scope.usage()
        asked = Asked()
        model = Slow(asked=asked, inner=Slow(asked=asked))
        if way == "sync":
            model.invoke("hi")
        else:
            asyncio.run(model.ainvoke("hi"))

    assert len(asked) == 2


def test_a_call_while_an_answer_is_read_does_not_wait_for_it(nobody_waits):
    """Nobody reads on while the thread waits."""
    with limited() as (scope, _sink):
        scope.usage()
        model = Streaming(asked=Asked())
        for _chunk in model.stream("hi"):
            model.invoke("hi")
        for _chunk in Streaming(asked=model.asked).stream("hi"):
            asyncio.run(Slow(asked=model.asked).ainvoke("hi"))

    assert len(model.asked) > 3


def test_a_call_while_a_task_reads_an_answer_does_not_wait_for_it(nobody_waits):
    """Nobody reads on while the task waits."""

    async def read():
        async for _chunk in model.astream("hi"):
            await model.ainvoke("hi")
            model.invoke("hi")  # in the loop's own thread, which must not be held

    with limited() as (scope, _sink):
        scope.usage()
        model = Streaming(asked=Asked())
        asyncio.run(read())

    assert len(model.asked) > 3


@pytest.mark.parametrize("way", ["sync", "async"])
def test_conversations_of_one_call_do_not_wait_for_each_other(nobody_waits, way):
    """They begin together, before any is answered."""
    said = [[HumanMessage("hi")], [HumanMessage("ho")]]
    with limited() as (scope, _sink):
        scope.usage()
        model = Slow(asked=Asked())
        if way == "sync":
            model.generate(said)
        else:
            asyncio.run(model.agenerate(said))

    assert len(model.asked) == 2


class Held(Slow):
    """A model that answers when it is let."""

    let: Any

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.asked.append(1)
        assert self.let.wait(GIVE_UP_S)
        message = AIMessage("There.", usage_metadata=TOKENS)
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.fixture
def held():
    """Return a model with a call under way, in a thread of its own."""
    model = Held(asked=Asked(), let=threading.Event())
    with ThreadPoolExecutor(2) as pool:
        try:
            yield model, lambda: pool.submit(model.invoke, "hi")
        finally:
            model.let.set()


def begun(held):
    model, begin = held
    before = len(model.asked)
    begin()
    assert until(lambda: len(model.asked) > before)


def test_a_call_is_made_if_the_first_takes_too_long(held):
    """Nobody knows whether anything is wrong with the budget."""
    with limited(wait_s=0.01) as (scope, _sink):
        scope.usage()
        begun(held)
        model = Slow(asked=Asked())

        assert model.invoke("hi").content == "There."
        assert asyncio.run(model.ainvoke("hi")).content == "There."


def test_a_call_is_refused_if_those_under_way_take_too_long(held):
    """They are expected to use up what is left, and the error says so."""
    with limited(2, wait_s=0.01) as (scope, _sink):
        scope.usage()
        Slow(asked=Asked()).invoke("hi")
        begun(held)
        with pytest.raises(
            BudgetExceeded, match="1 tokens of 2 tokens, and calls under way may use 1"
        ):
            Slow(asked=Asked()).invoke("hi")


def test_a_scope_that_closes_lets_go_whom_it_holds_back(held):
    """It counts nothing from then on, and stops nothing."""
    with limited(wait_s=GIVE_UP_S) as (scope, _sink):
        scope.usage()
        begun(held)
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(Slow(asked=Asked()).invoke, "hi")
            assert until(lambda: len(graph_callbacks().runs.unanswered) == 2)
            scope.close()

            assert call.result(GIVE_UP_S).content == "There."


def test_a_call_that_is_given_up_while_it_waits_is_told_of(held):
    """It is cancelled, and keeps nothing back."""

    async def give_up():
        call = asyncio.create_task(Slow(asked=asked).ainvoke("hi"))
        await asyncio.to_thread(until, lambda: len(graph_callbacks().runs.unanswered) == 2)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    asked = Asked()
    with limited(wait_s=GIVE_UP_S) as (scope, sink):
        scope.usage()
        begun(held)
        asyncio.run(give_up())
        scope.flush(GIVE_UP_S)

        assert [each.status for each in sink.events] == [Status.CANCELLED]
        assert asked == []


@pytest.fixture
def spent():
    """Return a scope whose budget is spent by a call, and the model that has answered it."""
    set_llm_cache(InMemoryCache())
    with limited(1) as (scope, sink):
        scope.usage()
        model = Streaming(asked=Asked())
        model.invoke("hi")
        yield model, scope, sink
    set_llm_cache(None)
    graph_callbacks().is_cache_used = True


def test_what_is_answered_from_a_cache_is_not_refused(spent):
    """It costs nothing; what is not in the cache is refused."""
    model, scope, _sink = spent

    assert model.invoke("hi").content == "There."
    assert asyncio.run(model.ainvoke("hi")).content == "There."
    with pytest.raises(BudgetExceeded):
        model.invoke("ho")
    assert len(model.asked) == 1
    assert scope.budgets[0].refused_calls == 1


def test_a_stream_that_looks_into_no_cache_passes_once_at_most(spent):
    """LangChain does not say which calls do: once it is seen that not all do, all are refused."""
    model, _scope, _sink = spent
    list(model.stream("hi"))

    for call in (lambda: list(model.stream("hi")), lambda: model.invoke("hi")):
        with pytest.raises(BudgetExceeded):
            call()
    assert len(model.asked) == 2


def test_text_from_a_cache_is_not_refused():
    """There LangChain asks its cache first."""
    set_llm_cache(InMemoryCache())
    try:
        with limited(1) as (scope, _sink):
            scope.usage()
            text = FakeListLLM(responses=["a", "b"])
            text.invoke("hi")
            Slow(asked=Asked(), seconds=0).invoke("hi")

            assert text.invoke("hi") == "a"
            with pytest.raises(BudgetExceeded):
                text.invoke("ho")
    finally:
        set_llm_cache(None)


def test_a_refusal_is_no_error_in_langchains_log(spent, caplog):
    """Who wanted the call is told; that a handler raised is how."""
    model, _scope, _sink = spent
    with caplog.at_level(logging.WARNING):
        for call in (lambda: model.invoke("ho"), lambda: asyncio.run(model.ainvoke("ho"))):
            with pytest.raises(BudgetExceeded):
                call()

    assert caplog.records == []


def test_a_call_that_was_not_made_has_a_known_cost(spent):
    """None: it is no call of unknown cost."""
    model, scope, sink = spent
    with pytest.raises(BudgetExceeded):
        model.invoke("ho")
    scope.flush(GIVE_UP_S)
    used = next(each.usage for each in sink.events if each.status is Status.REJECTED)

    assert (used.reported, used.cost_usd, used.input_tokens) == (True, 0.0, 0)
