"""
Times are those of the calls, however slowly the stream is read.

The script sets the clock: each piece of work takes what it says, and whoever reads the stream takes
a second for each event, while no node is at work. What is told must be the script's, to the bit.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.graph import START, StateGraph

from mnemoscope.adapters.langgraph.runs.callbacks import graph_callbacks
from mnemoscope.adapters.langgraph.runs.graph import runnable
from mnemoscope.adapters.langgraph.runs.spans import RunKind
from mnemoscope.telemetry.pricing.prices import Prices
from tests.kit.patience import GIVE_UP_S, until

# Sums of these are exact in binary.
BEFORE_S, FIRST_S, EACH_S, AFTER_S = 0.5, 0.25, 0.125, 0.0625
CHUNKS = 3
MODEL_S = FIRST_S + CHUNKS * EACH_S
NODE_S = BEFORE_S + MODEL_S + AFTER_S
SLOW_S = 1.0

pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")


class Clock:
    """Monotonic seconds that pass when the script says so."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.others = frozenset(graph_callbacks().runs._open)

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


class Scripted(BaseChatModel):
    """Takes its time, by the clock it is given."""

    clock: Any

    @property
    def _llm_type(self):
        return "scripted"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.clock.passes(MODEL_S)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Hi"))])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        self.clock.passes(FIRST_S)
        for _ in range(CHUNKS):
            chunk = ChatGenerationChunk(message=AIMessageChunk("H"))
            if run_manager:
                run_manager.on_llm_new_token("H", chunk=chunk)
            yield chunk
            self.clock.passes(EACH_S)

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        self.clock.passes(FIRST_S)
        for _ in range(CHUNKS):
            chunk = ChatGenerationChunk(message=AIMessageChunk("H"))
            if run_manager:
                await run_manager.on_llm_new_token("H", chunk=chunk)
            yield chunk
            await asyncio.sleep(0)  # so that the reader reads while it answers
            self.clock.passes(EACH_S)


class State(TypedDict, total=False):
    said: str


@pytest.fixture
def clock(monkeypatch):
    """Return the clock that runs are timed with."""
    clock = Clock()
    monkeypatch.setattr(graph_callbacks().runs, "clock", clock)
    return clock


@pytest.fixture
def graph(clock, bench):
    """Return a function that builds a watched graph of two nodes, sync or async."""
    model = Scripted(clock=clock)

    def node(_state):
        clock.passes(BEFORE_S)
        said = str(model.invoke("hi").text)
        clock.passes(AFTER_S)
        return {"said": said}

    async def anode(_state):
        clock.passes(BEFORE_S)
        said = str((await model.ainvoke("hi")).text)
        clock.passes(AFTER_S)
        return {"said": said}

    def built(*, is_async):
        builder = StateGraph(State)
        builder.add_node("draft", anode if is_async else node)
        builder.add_node("check", anode if is_async else node)
        builder.add_edge(START, "draft")
        builder.add_edge("draft", "check")
        return runnable(builder.compile(), bench.priced(Prices({})))

    return built


def at_work(clock):
    """Return whether a node of the script is; others' may have been left at work for good."""
    return any(
        run.kind is RunKind.NODE and number not in clock.others
        for number, run in list(graph_callbacks().runs._open.items())
    )


def dawdles(clock):
    """Take a second, once no node is at work."""
    until(lambda: not at_work(clock))
    clock.passes(SLOW_S)


async def adawdles(clock):
    """Do the same and let others work meanwhile."""
    async with asyncio.timeout(GIVE_UP_S):
        while at_work(clock):  # noqa: ASYNC110 - no event tells of its end
            await asyncio.sleep(0)
    clock.passes(SLOW_S)


def messages(graph, clock):
    for _part in graph(is_async=False).stream({}, stream_mode="messages"):
        dawdles(clock)


def v3(graph, clock):
    for _event in graph(is_async=False).stream_events({}, version="v3"):
        dawdles(clock)


def amessages(graph, clock):
    async def reads():
        async for _part in graph(is_async=True).astream({}, stream_mode="messages"):
            await adawdles(clock)

    asyncio.run(reads())


def av2(graph, clock):
    async def reads():
        async for _event in graph(is_async=True).astream_events({}, version="v2"):
            await adawdles(clock)

    asyncio.run(reads())


def av3(graph, clock):
    async def reads():
        async for _event in await graph(is_async=True).astream_events({}, version="v3"):
            await adawdles(clock)

    asyncio.run(reads())


@pytest.mark.parametrize("way", [messages, v3, amessages, av2, av3], ids=lambda way: way.__name__)
def test_times_are_the_scripts(way, graph, clock, events):
    """First tokens, model calls and nodes take what the script says: no second of the reader's."""
    way(graph, clock)
    told = events()
    calls = [each for each in told if each.operation == "chat"]
    nodes = [each for each in told if each.operation == "execute_node"]

    assert [each.usage.time_to_first_token_s for each in calls] == [FIRST_S] * 2
    assert [each.duration_s for each in calls] == [MODEL_S] * 2
    assert [each.duration_s for each in nodes] == [NODE_S] * 2


@pytest.mark.parametrize("way", [messages, v3, amessages, av2, av3], ids=lambda way: way.__name__)
def test_a_run_lasts_until_it_is_read(way, graph, clock, events):
    """As a control: the reader did dawdle, and the run, which waits for it, took that long."""
    way(graph, clock)
    (run,) = (each for each in events() if each.operation == "invoke_agent")

    assert run.duration_s >= 2 * NODE_S + 2 * SLOW_S


def test_a_call_that_does_not_stream_has_no_first_token(graph, clock, events):
    """Then its duration is told, and no time to a first token is made up."""
    graph(is_async=False).invoke({})
    calls = [each for each in events() if each.operation == "chat"]

    assert [each.duration_s for each in calls] == [MODEL_S] * 2
    assert [each.usage.time_to_first_token_s for each in calls] == [None] * 2
