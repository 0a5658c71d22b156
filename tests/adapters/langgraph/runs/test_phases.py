"""Phases of a graph's run: streams that fall silent, attempts that are not made, and its nodes."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest
import tenacity
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import ValidationError

from mnemoscope.adapters.langgraph.runs.callbacks import graph_callbacks
from mnemoscope.adapters.langgraph.runs.gate import RunGate, gate
from mnemoscope.memory import (
    BudgetExceeded,
    Mode,
    Phase,
    Phases,
    RefusedError,
    StoppedError,
    Stopping,
    context,
)
from mnemoscope.memory.api import Status
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.event.verdict_event import VerdictEvent
from tests.kit.event_parts import parts_of

pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self):
        return self.now


class Model(BaseChatModel):
    """A model whose chunks and failures take as long as a test says."""

    clock: Any = None
    chunks_s: tuple[float, ...] = ()
    fails_after_s: float | None = None
    calls: list[int] = []  # noqa: RUF012 - pydantic copies it

    @property
    def _llm_type(self):
        return "scripted"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.calls.append(1)
        if self.fails_after_s is not None:
            self.clock.now += self.fails_after_s
            raise ConnectionError
        return ChatResult(generations=[ChatGeneration(message=AIMessage("hi"))])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        self.calls.append(1)
        for seconds in self.chunks_s:
            self.clock.now += seconds
            chunk = ChatGenerationChunk(message=AIMessageChunk("x"))
            if run_manager is not None:
                run_manager.on_llm_new_token("x", chunk=chunk)
            yield chunk


class State(TypedDict):
    said: Annotated[list[Any], operator.add]


class Agent:
    """A graph of one node in one phase, on a clock of its own."""

    def __init__(self, scope, sink, phases):
        self.scope, self.sink, self.phases, self.clock = scope, sink, phases, Clock()
        book = scope._parts.accounting.rulebook
        book.clock = book.runs._clock = self.clock
        self.seen: list[Any] = []

    def run(self, work, **options):
        """Run *work* in the node, and return what it said."""

        def node(_state):
            with self.phases.phase("read"):
                return {"said": [work()]}

        return self._graph(node).invoke({"said": []}, **options)["said"]

    def arun(self, work):
        async def node(_state):
            with self.phases.phase("read"):
                return {"said": [await work()]}

        return asyncio.run(self._graph(node).ainvoke({"said": []}))["said"]

    def _graph(self, node):
        builder = StateGraph(State)
        builder.add_node("node", node)
        builder.add_edge(START, "node")
        saver = self.scope.checkpointer(InMemorySaver())
        self.config = {"configurable": {"thread_id": "t-1"}}
        return self.scope.runnable(builder.compile(checkpointer=saver)).with_config(self.config)

    def statuses(self, operation):
        assert self.scope.flush()
        return [each.status for each in self.sink.events if each.operation == operation]

    def reasons(self):
        assert self.scope.flush()
        return [each.reason for each in parts_of(self.sink.events, VerdictEvent)]


@pytest.fixture
def agent():
    """Return an agent whose phase has 100 s."""
    gate().clear()
    phases = Phases([Phase("read", 100)])
    rules = [phases, Stopping(timeout_s=None, max_errors=None, max_iterations=10)]
    with scope_for_tests(rules=rules) as (scope, sink):
        yield Agent(scope, sink, phases)
    gate().clear()


@pytest.fixture
def long_agent():
    """Return an agent whose phase has as many seconds as streams may be silent, and more."""
    gate().clear()
    phases = Phases([Phase("read", 10_000)])
    with scope_for_tests(rules=[phases]) as (scope, sink):
        yield Agent(scope, sink, phases)
    gate().clear()


# -- attempts --------------------------------------------------------------------------------------


def takes_a_callable() -> bool:
    """Return whether LangChain's retries ask somebody, instead of knowing types alone."""
    try:
        RunnableLambda(len).with_retry(retry_if_exception_type=bool)
    except ValidationError:
        return False
    return True


ASKED = pytest.mark.skipif(
    not takes_a_callable(), reason="this langchain-core's with_retry takes types alone"
)


def with_langchain(agent, model):
    """Return what asks *model* by LangChain's retries."""
    patient = model.with_retry(
        retry_if_exception_type=agent.scope.may_retry, wait_exponential_jitter=False
    )
    return lambda: patient.invoke("hi").content


def with_tenacity(agent, model):
    """Return what asks *model* by tenacity's."""
    return tenacity.retry(
        retry=tenacity.retry_if_exception(agent.scope.may_retry),
        stop=tenacity.stop_after_attempt(3),
        reraise=True,
    )(lambda: model.invoke("hi").content)


RETRIES = pytest.mark.parametrize(
    "retries", [pytest.param(with_langchain, marks=ASKED), with_tenacity]
)


@RETRIES
def test_attempts_are_made_while_there_is_time(agent, retries):
    """Three, and then the model's own error."""
    model = Model(clock=agent.clock, fails_after_s=1)

    with pytest.raises(ConnectionError):
        agent.run(retries(agent, model))

    assert len(model.calls) == 3
    assert agent.statuses("execute_node") == [Status.ERROR]


@RETRIES
def test_a_phase_that_ends_within_an_attempt_stops_before_the_next(agent, retries):
    """The run is cancelled, and has not failed: neither for its caller nor in its events."""
    model = Model(clock=agent.clock, fails_after_s=111)

    with pytest.raises(StoppedError, match="overrun") as stopped:
        agent.run(retries(agent, model))

    assert len(model.calls) == 1
    assert isinstance(stopped.value.__cause__, ConnectionError)
    assert agent.statuses("execute_node") == [Status.CANCELLED]
    assert agent.statuses("invoke_agent") == [Status.CANCELLED]
    assert agent.reasons() == ["overrun"]


@RETRIES
def test_what_a_caller_cancels_stops_before_the_next_attempt(agent, retries):
    """By a fact that says so, noted while an attempt is made."""
    model = Model(clock=agent.clock, fails_after_s=1)
    asked = model._generate

    def generate(*args, **kwargs):
        agent.scope.note_facts(abort=len(model.calls) == 1)
        return asked(*args, **kwargs)

    object.__setattr__(model, "_generate", generate)

    with pytest.raises(StoppedError, match="aborted"):
        agent.run(retries(agent, model))

    assert len(model.calls) == 2


@RETRIES
def test_a_refusal_is_not_tried_again(agent, retries):
    """It would be refused again, after a wait."""
    model = Model(clock=agent.clock)

    def work():
        agent.clock.now += 111
        return retries(agent, model)()

    with pytest.raises(StoppedError):
        agent.run(work)

    assert model.calls == []
    assert agent.reasons() == ["overrun"]


@pytest.mark.parametrize(
    ("error", "may"),
    [
        (OSError(), True),
        (RefusedError("roles", "no_role"), False),
        (BudgetExceeded("b", 1, 1, "usd"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_what_is_refused_or_interrupted_may_not_be_tried_again(agent, error, may):
    """By whatever rule or budget, while the run itself may go on."""
    assert agent.scope.may_retry(error) is may


@ASKED
def test_asynchronous_attempts_stop_too(agent):
    """With LangChain's retries."""
    model = Model(clock=agent.clock, fails_after_s=111)
    patient = model.with_retry(
        retry_if_exception_type=agent.scope.may_retry, wait_exponential_jitter=False
    )

    async def work():
        return (await patient.ainvoke("hi")).content

    with pytest.raises(StoppedError, match="overrun"):
        agent.arun(work)

    assert len(model.calls) == 1


@ASKED
def test_attempts_of_what_is_no_model_stop_too(agent):
    """A tool of another library, say."""
    tried = []

    def fetch(_given):
        tried.append(1)
        agent.clock.now += 60
        raise OSError

    patient = RunnableLambda(fetch).with_retry(
        retry_if_exception_type=agent.scope.may_retry, wait_exponential_jitter=False
    )
    with pytest.raises(StoppedError):
        agent.run(lambda: patient.invoke("x"))

    assert len(tried) == 2


# -- streams ---------------------------------------------------------------------------------------


def read(model, seen):
    """Return what reads the stream of *model*."""

    def work():
        for chunk in model.stream("hi"):
            seen.append(chunk.content)
        return "done"

    return work


@pytest.mark.parametrize(("silent_s", "chunks"), [(89.9, 3), (90, 2)])
def test_a_stream_that_is_silent_for_90_s_has_hung(long_agent, silent_s, chunks):
    """The chunk that comes after all is not waited for any longer."""
    agent = long_agent
    model = Model(clock=agent.clock, chunks_s=(200, 1, silent_s))

    if chunks == 3:
        assert agent.run(read(model, agent.seen)) == ["done"]
    else:
        with pytest.raises(StoppedError, match="hung"):
            agent.run(read(model, agent.seen))
        assert agent.reasons() == ["hung"]

    assert [each for each in agent.seen if each] == ["x"] * chunks


async def aread(model, seen):
    async for chunk in model.astream("hi"):
        seen.append(chunk.content)
    return "done"


def test_an_asynchronous_stream_that_is_silent_has_hung(long_agent):
    """As a synchronous one."""
    agent = long_agent
    model = Model(clock=agent.clock, chunks_s=(1, 1, 90))

    with pytest.raises(StoppedError, match="hung"):
        agent.arun(lambda: aread(model, agent.seen))


def test_a_stream_in_the_third_version_of_streaming_that_is_silent_has_hung(long_agent):
    """Its chunks come by another way."""
    agent = long_agent
    model = Model(clock=agent.clock, chunks_s=(1, 1, 90))

    def node(_state):
        with agent.phases.phase("read"):
            return {"said": [model.invoke("hi").content]}

    run = agent._graph(node).stream_events({"said": []}, agent.config, version="v3")
    with pytest.raises(StoppedError, match="hung"):
        list(run.messages), run.output


def test_events_of_a_stream_are_chunks_of_it(long_agent):
    """Models that stream in the third version themselves tell of these and of no tokens."""
    model = Model(clock=long_agent.clock, chunks_s=(1, 1))
    (handler,) = [each for each in gate().handlers if isinstance(each, RunGate)]

    def work():
        chunks = model.stream("hi")
        next(chunks)
        call = next(reversed(graph_callbacks().runs._open))
        long_agent.clock.now += 89
        handler.on_stream_event(None, run_id=call)
        long_agent.clock.now += 90
        handler.on_stream_event(None, run_id=call)

    with pytest.raises(StoppedError, match="hung"):
        long_agent.run(work)


def test_a_stream_that_has_ended_is_not_silent(long_agent):
    """However long its agent works on what it said."""
    agent = long_agent
    model = Model(clock=agent.clock, chunks_s=(1, 1))

    def work():
        read(model, agent.seen)()
        agent.clock.now += 500
        return read(model, agent.seen)()

    assert agent.run(work) == ["done"]


def test_silence_is_seen_by_whoever_asks_meanwhile(long_agent):
    """No chunk has to come for that."""
    agent, modes = long_agent, []
    model = Model(clock=agent.clock, chunks_s=(1, 1))

    def work():
        chunks = model.stream("hi")
        next(chunks)
        modes.append(agent.phases.mode())
        agent.clock.now += 91
        modes.append(agent.phases.mode())
        return "left"

    agent.run(work)

    assert modes == [Mode.NORMAL, Mode.TERMINATE]


def test_a_stream_is_ended_as_its_phase_is(agent):
    """A model that goes on and on is asked for no further chunk."""
    model = Model(clock=agent.clock, chunks_s=(50,) * 10)

    with pytest.raises(StoppedError, match="overrun"):
        agent.run(read(model, agent.seen))

    assert len([each for each in agent.seen if each]) == 2
    assert agent.statuses("chat") == [Status.CANCELLED]


def test_a_graph_that_is_ended_with_its_phase_leaves_the_run_to_the_next(agent):
    """A phase may be around a graph: no further node of it begins, and another graph does."""
    ran = []

    def node(_state):
        ran.append(1)
        agent.clock.now += 70
        return {"said": ["x"]}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", "node")
    graph = agent.scope.runnable(builder.compile())

    with context(run="workflow-1"):
        with pytest.raises(StoppedError, match="overrun"), agent.phases.phase("read"):
            graph.invoke({"said": []})
        with pytest.raises(StoppedError, match="iterations"):
            graph.invoke({"said": []})

    assert len(ran) == 2 + 8


def test_a_call_that_does_not_stream_is_never_silent(long_agent):
    """Nobody knows how many chunks there would be."""
    model = Model(clock=long_agent.clock)

    def work():
        long_agent.clock.now += 500
        return model.invoke("hi").content

    assert long_agent.run(work) == ["hi"]
