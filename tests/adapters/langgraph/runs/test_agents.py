"""Agents that LangChain and LangGraph make, called in every way: each model call is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.channels import LastValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel import NodeBuilder, Pregel
from langgraph_supervisor import create_supervisor
from langsmith import Client, traceable
from langsmith.run_helpers import tracing_context

from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S

pytestmark = [
    pytest.mark.filterwarnings("ignore:The v3 streaming protocol"),
    pytest.mark.filterwarnings("ignore:create_react_agent has been moved"),
]
ASKED = {"messages": [("user", "Where is it?")]}
TOKENS = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
THREAD = {"configurable": {"thread_id": "t-1"}}


class Model(BaseChatModel):
    """
    A model that asks for its tool once, if it has any, and counts how often it is called.

    Attributes:
        calls: A list with an entry for each call, shared by its copies.
    """

    calls: Any
    tool: str = ""

    @property
    def _llm_type(self) -> str:
        return "counting"

    def bind_tools(self, tools: Any, **_options: Any) -> Model:
        """Return a model that asks for the first of *tools*."""
        return Model(calls=self.calls, tool=getattr(tools[0], "name", "")) if tools else self

    def _answer(self, messages: list[BaseMessage]) -> dict[str, Any]:
        self.calls.append(1)
        asks = self.tool and not any(each.type == "tool" for each in messages)
        wanted = [{"name": self.tool, "args": {"what": "it"}, "id": "1"}] if asks else []
        return {"content": "There.", "tool_calls": wanted, "usage_metadata": TOKENS}

    def _generate(self, messages: Any, *_args: Any, **_kwargs: Any) -> ChatResult:
        message = AIMessage(**self._answer(messages))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, messages: Any, *_args: Any, **_kwargs: Any) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages)
        parts = [
            {"name": each["name"], "args": '{"what": "it"}', "id": each["id"], "index": 0}
            for each in answer.pop("tool_calls")
        ]
        yield ChatGenerationChunk(message=AIMessageChunk(**answer, tool_call_chunks=parts))


class Calls(list[int]):
    """Keeps its identity where pydantic would copy a list."""

    def __deepcopy__(self, _memo: Any) -> Calls:
        return self


@tool
def look(what: str) -> str:
    """Look for something."""
    return f"{what} is there"


def plain(model: Model) -> Any:
    return create_agent(model, tools=[])


def with_tools(model: Model) -> Any:
    return create_agent(model, tools=[look])


def with_middleware(model: Model) -> Any:
    middleware = [ToolRetryMiddleware(), ModelCallLimitMiddleware(run_limit=5)]
    return create_agent(model, tools=[look], middleware=middleware)


def with_saver(model: Model) -> Any:
    return create_agent(model, tools=[look], checkpointer=InMemorySaver())


def agent_as_tool(model: Model) -> Any:
    inner = with_tools(model)

    @tool
    def ask(what: str) -> str:
        """Ask another agent."""
        return inner.invoke({"messages": [("user", what)]})["messages"][-1].content

    return create_agent(model, tools=[ask])


def as_a_node(model: Model) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("agent", with_tools(model))
    builder.add_edge(START, "agent")
    return builder.compile()


def supervised(model: Model) -> Any:
    return create_supervisor([create_agent(model, tools=[], name="one")], model=model).compile()


def functional(model: Model) -> Any:
    @entrypoint()
    def answer(given: Any) -> Any:
        return {"messages": [model.invoke(given["messages"])]}

    return answer


def prebuilt(model: Model) -> Any:
    from langgraph.prebuilt import create_react_agent

    return create_react_agent(model, tools=[look])


def low_level(model: Model) -> Any:
    node = NodeBuilder().subscribe_only("messages").do(lambda said: [model.invoke(said)])
    return Pregel(
        nodes={"answer": node.write_to("answers")},
        channels={"messages": LastValue(list), "answers": LastValue(list)},
        input_channels=["messages"],
        output_channels=["answers"],
    )


def with_wrapped_calls(model: Model) -> Any:
    """LangChain traces the hooks of middleware by LangSmith's own means."""

    class Watching(AgentMiddleware[Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request)

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            return handler(request)

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return await handler(request)

    inner = create_agent(model, tools=[look])

    @tool
    def ask(what: str) -> str:
        """Ask another agent."""
        return inner.invoke({"messages": [("user", what)]})["messages"][-1].content

    return create_agent(model, tools=[ask], middleware=[Watching()])


def in_traceable_functions(model: Model) -> Any:
    """Functions that the application has LangSmith trace, around a model, a graph and a tool."""
    inner = with_tools(model)

    @traceable
    def answered(said: Any) -> Any:
        return model.invoke(said)

    @traceable
    def asked(said: Any) -> Any:
        look.invoke({"what": "it"})
        return [*inner.invoke({"messages": said})["messages"], answered(said)]

    builder = StateGraph(MessagesState)
    builder.add_node("ask", lambda state: {"messages": asked(state["messages"])})
    builder.add_edge(START, "ask")
    return builder.compile()


AGENTS: tuple[Callable[[Model], Any], ...] = (
    plain,
    with_tools,
    with_middleware,
    with_saver,
    agent_as_tool,
    as_a_node,
    supervised,
    functional,
    prebuilt,
    low_level,
    with_wrapped_calls,
    in_traceable_functions,
)
PLACED: dict[str, tuple[Callable[[Model], Any], ...] | str] = {
    "langchain.agents.create_agent": (
        plain,
        with_tools,
        with_middleware,
        with_saver,
        with_wrapped_calls,
    ),
    "langgraph.func.entrypoint": (functional,),
    "langgraph.func.task": "a part of an entrypoint",
    "langgraph.graph.MessageGraph": "a StateGraph whose whole state is messages",
    "langgraph.graph.StateGraph": (as_a_node, in_traceable_functions),
    "langgraph.prebuilt.ToolNode": "calls tools, and no model",
    "langgraph.prebuilt.ValidationNode": "checks arguments, and calls no model",
    "langgraph.prebuilt.create_react_agent": (prebuilt,),
    "langgraph.pregel.Pregel": (low_level,),
    "langgraph_supervisor.create_forward_message_tool": "a tool",
    "langgraph_supervisor.create_handoff_tool": "a tool",
    "langgraph_supervisor.create_supervisor": (supervised,),
}
"""What is public and makes a graph or a part of one: the agents here that do, or why none does."""


def constructors() -> set[str]:
    """Return all that the installed packages offer in `__all__` and that may make a graph."""
    packages = [import_module("langchain.agents"), import_module("langgraph_supervisor")]
    packages += [
        import_module(f"langgraph.{each.name}")
        for each in iter_modules(import_module("langgraph").__path__)
        if each.ispkg and not each.name.startswith("_") and each.name not in NOT_GRAPHS
    ]
    return {
        f"{package.__name__}.{name}"
        for package in packages
        for name in getattr(package, "__all__", ())
        if may_make_a_graph(name, getattr(package, name))
    }


NOT_GRAPHS = {"cache", "channels", "checkpoint", "managed", "store", "stream"}
"""Packages of LangGraph whose parts a graph is made with."""


def may_make_a_graph(name: str, found: Any) -> bool:
    """Tell that by its name, or by what can be done with it."""
    is_kind = isinstance(found, type) and (hasattr(found, "invoke") or hasattr(found, "compile"))
    return is_kind or name.startswith("create_") or getattr(found, "__module__", "") == FUNCTIONAL


FUNCTIONAL = "langgraph.func"


def test_every_constructor_that_is_installed_is_tried():
    """One that a new release brings fails here, until it is placed."""
    assert constructors() == PLACED.keys()
    tried = {made for placed in PLACED.values() if not isinstance(placed, str) for made in placed}
    assert tried <= {*AGENTS}


async def all_of(found: Any) -> None:
    async for _ in found:
        pass


async def output_of(graph: Any) -> Any:
    return await (await graph.astream_events(ASKED, THREAD, version="v3")).output()


WATCHED: dict[str, Callable[[Any], object]] = {
    "invoke": lambda graph: graph.invoke(ASKED, THREAD),
    "stream": lambda graph: list(graph.stream(ASKED, THREAD)),
    "messages": lambda graph: list(graph.stream(ASKED, THREAD, stream_mode="messages")),
    "stream v2": lambda graph: list(graph.stream(ASKED, THREAD, version="v2")),
    "batch": lambda graph: graph.batch([ASKED], THREAD),
    "abatch": lambda graph: asyncio.run(graph.abatch([ASKED], THREAD)),
    "ainvoke": lambda graph: asyncio.run(graph.ainvoke(ASKED, THREAD)),
    "astream": lambda graph: asyncio.run(all_of(graph.astream(ASKED, THREAD))),
    "events": lambda graph: asyncio.run(all_of(graph.astream_events(ASKED, THREAD, version="v2"))),
    "v3": lambda graph: graph.stream_events(ASKED, THREAD, version="v3").output,
    "async v3": lambda graph: asyncio.run(output_of(graph)),
}


def tokens_in(events: list[Any]) -> list[int]:
    return [each.usage.input_tokens for each in events if each.operation == "chat"]


def orphans(events: list[Any]) -> list[str]:
    """Return the operations whose span is below one that nobody told of."""
    spans = {each.trace.span_id for each in events}
    return [
        each.operation
        for each in events
        if each.trace.parent_span_id and each.trace.parent_span_id not in spans
    ]


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("way", WATCHED)
@pytest.mark.parametrize("made", AGENTS)
def test_a_watched_agent_is_counted(made, way):
    """Every call of its models, in one trace, without orphans."""
    model = Model(calls=Calls())
    with scope_for_tests() as (scope, sink):
        WATCHED[way](scope.runnable(made(model)))
        scope.flush(timeout_s=GIVE_UP_S)

        assert tokens_in(sink.events) == [3] * len(model.calls) != []
        assert len({each.trace.trace_id for each in sink.events}) == 1
        assert orphans(sink.events) == []


def read(agent: Any, scope: Any) -> Any:
    run = agent.stream_events(ASKED, THREAD, version="v3", transformers=[scope.usage()])
    assert run.output
    return run.extensions["usage"]


def aread(agent: Any, scope: Any) -> Any:
    async def reading() -> Any:
        run = await agent.astream_events(ASKED, THREAD, version="v3", transformers=[scope.usage()])
        assert await run.output()
        return run.extensions["usage"]

    return asyncio.run(reading())


@pytest.mark.parametrize("reading", [read, aread])
@pytest.mark.parametrize("made", AGENTS)
def test_a_stream_of_an_agent_has_its_totals(made, reading):
    """Whoever made the graph, and whatever its runs say of themselves."""
    model = Model(calls=Calls())
    with scope_for_tests() as (scope, sink):
        totals = reading(made(model), scope)
        scope.flush(timeout_s=GIVE_UP_S)

        assert (totals.calls, totals.input_tokens) == (len(model.calls), 3 * len(model.calls))
        assert model.calls
        assert tokens_in(sink.events) == [3] * len(model.calls)
        assert orphans(sink.events) == []


TRACED = {way: WATCHED[way] for way in ("invoke", "ainvoke", "v3")}


@pytest.mark.parametrize("way", TRACED)
@pytest.mark.parametrize("made", AGENTS)
def test_an_agent_that_langsmith_traces_is_counted(made, way, langsmith_server):
    """
    As one that it does not trace: each call in its node, in one trace.

    What LangSmith traces by itself is a parent that no callback is told of.
    """
    client = Client()
    model = Model(calls=Calls())
    with scope_for_tests() as (scope, sink), tracing_context(enabled=True, client=client):
        TRACED[way](scope.runnable(made(model)))
        scope.flush(timeout_s=GIVE_UP_S)
    client.close()

    assert tokens_in(sink.events) == [3] * len(model.calls) != []
    assert None not in {each.usage.node for each in sink.events if each.operation == "chat"}
    assert len({each.trace.trace_id for each in sink.events}) == 1
    assert orphans(sink.events) == []


@pytest.mark.parametrize("made", AGENTS)
def test_a_stream_that_langsmith_traces_has_its_totals(made, langsmith_server):
    """What is not found would be a total of zero."""
    client = Client()
    model = Model(calls=Calls())
    with scope_for_tests() as (scope, _sink), tracing_context(enabled=True, client=client):
        totals = read(made(model), scope)
    client.close()

    assert (totals.calls, totals.input_tokens) == (len(model.calls), 3 * len(model.calls))
    assert model.calls
