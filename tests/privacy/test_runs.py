"""Runs of graphs: what goes through nodes, tools and models comes out of no sink as it is."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph

from mnemoscope.telemetry.otlp.conventions import semconv
from tests.kit.canaries import email, text, value

PLACES = {
    *("graph", "system", "argument", "argumentasname", "toolmessage", "toolresult"),
    *("answer", "call", "update", "part"),
}
"""Wherever something is planted."""


class Model(BaseChatModel):
    """A model that answers with a call of a tool, and quotes people."""

    @property
    def _llm_type(self) -> str:
        return "quoting"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        call = {"name": "send", "id": "call-1", "args": {"to": value("call")}}
        blocks = [{"type": "text", "text": text("answer")}]
        message = AIMessage(blocks, tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def send(to: str, about: dict[str, Any]) -> str:
    """Send a letter."""
    return text("tool-result")


def write(state: MessagesState) -> dict[str, Any]:
    """Ask a model and a tool, as nodes do."""
    told = [SystemMessage(text("system")), *state["messages"]]
    answer = Model().invoke([*told, ToolMessage(text("tool-message"), tool_call_id="call-0")])
    send.invoke({"to": text("argument"), "about": {email("argument-as-name"): "x"}})
    return {"messages": [answer, HumanMessage([{"type": "text", "text": text("part")}])]}


def say(_state: MessagesState) -> dict[str, Any]:
    """Return text that is in no message of a model."""
    return {"messages": [{"role": "user", "content": text("update")}]}


@pytest.fixture
def run() -> Any:
    """Return what runs the graph for somebody, with exits for its sinks."""

    def run_with(exits: Any) -> Any:
        builder = StateGraph(MessagesState)
        builder.add_node("write", write)
        builder.add_node("say", say)
        builder.add_edge(START, "write")
        builder.add_edge("write", "say")
        graph = exits.scope.runnable(builder.compile())
        given = {"messages": [HumanMessage(text("graph"), name="somebody")]}
        return exits.given(lambda: graph.invoke(given))

    return run_with


async def test_nothing_of_a_run_comes_out(exits, run):
    """Of no sink, where all are opted in to content: neither of messages nor of tools."""
    await run(exits)

    assert not exits.raised
    assert exits.leaks() == []
    spans = exits.sinks()["otlp"]
    for name in (semconv.INPUT_MESSAGES, semconv.TOOL_CALL_ARGUMENTS, "llm.output_messages.0"):
        assert name.encode() in spans


async def test_what_is_planted_there_would_come_out(make_exits, run):
    """Without redaction, from every place."""
    exits = make_exits(redacts=False)
    await run(exits)

    assert exits.leaked_places() >= PLACES


async def test_nothing_of_it_is_told_where_nobody_asked(make_exits, run):
    """Not even redacted: sinks that are not opted in to content have none."""
    exits = make_exits(redacts=False, content_sinks="")
    await run(exits)

    assert not exits.leaked_places() & PLACES
    assert b"_messages" not in exits.sinks()["otlp"]
