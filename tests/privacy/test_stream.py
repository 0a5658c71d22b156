"""A redacted LangGraph v3 stream: its reader sees nothing of a person, its run goes on with all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.stream.transformers import (
    CheckpointsTransformer,
    CustomTransformer,
    TasksTransformer,
    UpdatesTransformer,
)
from langgraph.types import interrupt

from mnemoscope.memory import Mnemoscope, context, load_settings
from mnemoscope.memory.privacy.engine.content import FAILED
from mnemoscope.memory.privacy.engine.redactor import Redactor
from tests.kit.canaries import SUBJECT, email, key, leaks, text

COLOURS = ["sync", "async"]
OPENING = "All orders are late. "
WHOM = {"tenant": "acme", "customer": key("customer"), "known": (SUBJECT,)}

pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")


class Speaking(BaseChatModel):
    """A model that says, thinks and calls what it is told to, so many characters at a time."""

    says: str = ""
    thinks: str = ""
    calls: str = ""
    size: int = 3
    fails: bool = False

    @property
    def _llm_type(self) -> str:
        return "speaking"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.says))])

    def _stream(self, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        for piece in self._pieces(self.thinks):
            yield _chunk([{"type": "reasoning", "reasoning": piece, "index": 0}])
        for piece in self._pieces(self.says):
            yield _chunk([{"type": "text", "text": piece, "index": 1}])
        for number, piece in enumerate(self._pieces(self.calls)):
            named = {"name": "send", "id": "call-1"} if not number else {"name": None, "id": None}
            call = {**named, "args": piece, "index": 2, "type": "tool_call_chunk"}
            yield _chunk("", tool_call_chunks=[call])
        if self.fails:
            raise ConnectionError(text("error"))

    def _pieces(self, whole: str) -> Iterator[str]:
        return (whole[at : at + self.size] for at in range(0, len(whole), self.size))


def _chunk(content: Any, **given: Any) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(content, **given))


def calling(model: BaseChatModel) -> Any:
    """Return a node that has *model* speak, and keeps what it said."""
    return lambda _state: {"messages": [model.invoke("hi")]}


def graph_of(checkpointer: Any = None, **nodes: Any) -> Any:
    """Return a graph whose nodes run side by side."""
    builder = StateGraph(MessagesState)
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(START, name)
    return builder.compile(checkpointer=checkpointer)


class Seen:
    """
    All that the reader of a stream saw.

    Attributes:
        events: Every event.
        output: What the run returned, or its error.
        channels: What the run's own channels held.
    """

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.output: Any = None
        self.channels: list[Any] = []

    @property
    def leaks(self) -> list[str]:
        """What is seen of a canary, and where."""
        told = (self.events, self.output, self.channels)
        return leaks("\n".join(map(repr, told)).encode("utf-8", "replace"))

    def said(self, field: str, *, node: str | None = None) -> str:
        """Return what the deltas of a kind add up to, of all nodes or of one."""
        payloads = (each["params"]["data"] for each in self.events if each["method"] == "messages")
        return "".join(
            payload["delta"].get(field, "")
            for payload, metadata in payloads
            if isinstance(payload, dict)
            and payload.get("event") == "content-block-delta"
            and node in {None, metadata["langgraph_node"]}
        )


OPTED = (UpdatesTransformer, CustomTransformer, TasksTransformer, CheckpointsTransformer)


def read(scope: Mnemoscope, graph: Any, colour: str, *first: Any, **config: Any) -> Seen:
    """Run *graph* for somebody and read all of its stream."""
    options = {"version": "v3", "transformers": [scope.redacted_stream(), *first, *OPTED]}
    inputs = {"messages": [HumanMessage(text("input"))]}
    seen = Seen()
    with context(**WHOM):
        if colour == "sync":
            _read(graph.stream_events(inputs, config or None, **options), seen)
        else:
            asyncio.run(_aread(graph, inputs, config, options, seen))
    return seen


def _read(run: Any, seen: Seen) -> None:
    try:
        seen.events.extend(run)
        seen.output = run.output
        seen.channels = [each.output for each in run.messages]
    except ConnectionError as exc:
        seen.output = type(exc)


async def _aread(graph: Any, inputs: Any, config: Any, options: Any, seen: Seen) -> None:
    run = await graph.astream_events(inputs, config or None, **options)
    try:
        async for each in run:
            seen.events.append(each)
        seen.output = await run.output()
        seen.channels = [await each.output async for each in run.messages]
    except ConnectionError as exc:
        seen.output = type(exc)


def speaking(size: int = 3, **given: Any) -> Speaking:
    """Return a model that plants canaries in all it can say."""
    calls = json.dumps({"to": email("args"), "note": text("args")})
    return Speaking(
        says=f"{OPENING}{text('text')}", thinks=text("reasoning"), calls=calls, size=size, **given
    )


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_nothing_comes_out_of_the_stream(size, colour, exits):
    """Of text, reasoning and calls, of a node and a subgraph, in whatever chunks they come."""
    inner = graph_of(inner=calling(speaking(size)))
    graph = graph_of(outer=calling(speaking(size)), nested=inner)
    seen = read(exits.scope, graph, colour, exits.scope.usage())

    assert OPENING in seen.said("text", node="outer")
    assert OPENING in seen.said("text", node="inner")
    assert "<EMAIL_ADDRESS>" in seen.said("reasoning")
    assert "<EMAIL_ADDRESS>" in seen.said("args")
    assert len(seen.output["messages"]) == 3
    assert seen.leaks == []
    assert exits.leaks() == []


@pytest.mark.parametrize("colour", COLOURS)
def test_all_of_it_comes_out_of_the_stream_unredacted(colour, make_exits):
    """The control: each place is seen where nothing is redacted."""
    seen = read(make_exits(redacts=False).scope, graph_of(outer=calling(speaking())), colour)
    places = {each.rpartition(" ")[2] for each in seen.leaks if each.startswith("canary from ")}

    assert places == {"text", "reasoning", "args", "input"}


@pytest.mark.parametrize("colour", COLOURS)
def test_the_deltas_add_up_to_the_block(colour, exits):
    """What a reader puts together is what the end of the block says."""
    seen = read(exits.scope, graph_of(outer=calling(speaking())), colour)
    payloads = [each["params"]["data"][0] for each in seen.events if each["method"] == "messages"]
    blocks = [each["content"] for each in payloads if each["event"] == "content-block-finish"]

    assert [each["type"] for each in blocks] == ["reasoning", "text", "tool_call"]
    assert seen.said("reasoning") == blocks[0]["reasoning"]
    assert seen.said("text") == blocks[1]["text"]
    assert "<EMAIL_ADDRESS" in blocks[2]["args"]["to"]


@pytest.mark.parametrize("colour", COLOURS)
def test_the_run_goes_on_with_what_it_has(colour, exits):
    """Its nodes and its checkpoints have the text as it was said."""
    saver = InMemorySaver()
    graph = graph_of(saver, outer=calling(speaking()), nested=graph_of(i=calling(speaking())))
    seen = read(exits.scope, graph, colour, configurable={"thread_id": "t-1"})
    held = graph.get_state({"configurable": {"thread_id": "t-1"}}).values["messages"]

    assert seen.leaks == []
    assert [repr(each).count("zqxcanary") > 0 for each in held] == [True, True, True]


def test_calls_at_once_are_kept_apart(exits):
    """Two nodes of a name's two halves: neither is put together with the other."""
    one = Speaking(says="All is late. My name is Rosalind Quimby, she says. Bye", size=2)
    two = Speaking(says="It is so fine. Nothing of anybody is in here. Bye", size=2)
    seen = read(exits.scope, graph_of(one=calling(one), two=calling(two)), "async")

    assert seen.said("text", node="one") == "All is late. My name is <PERSON>, she says. Bye"
    assert seen.said("text", node="two") == two.says


@pytest.mark.parametrize("colour", COLOURS)
def test_what_is_held_back_comes_when_a_call_breaks_off(colour, exits):
    """Redacted, and so does the error; the caller is given its own error."""
    model = Speaking(says=f"{OPENING}My name is Rosalind Quimby", fails=True)
    seen = read(exits.scope, graph_of(nested=graph_of(inner=calling(model))), colour)

    assert seen.said("text") == f"{OPENING}My name is <PERSON>"
    assert "ConnectionError" in repr([e for e in seen.events if e["method"] == "lifecycle"])
    assert seen.output is ConnectionError
    assert seen.leaks == []


@pytest.mark.parametrize("colour", COLOURS)
def test_whole_messages_and_custom_events_are_redacted(colour, exits):
    """Of models that do not stream, of nodes that write or ask; structure stays."""

    def node(_state: Any) -> Any:
        get_stream_writer()({"note": text("custom")})
        interrupt(text("question"))

    plain = calling(Speaking(says=text("whole"), disable_streaming=True))
    graph = graph_of(InMemorySaver(), plain=plain, asking=node)
    seen = read(exits.scope, graph, colour, configurable={"thread_id": "t-1"})
    methods = {each["method"] for each in seen.events}

    assert {"messages", "values", "updates", "custom", "checkpoints"} <= methods
    assert seen.leaks == []


def test_older_chunks_come_whole(exits):
    """Of a model that a node streams by itself: they are put together first."""

    def node(_state: Any) -> Any:
        for _ in Speaking(says=text("chunks"), size=4).stream("hi"):
            pass
        return {"messages": []}

    seen = read(exits.scope, graph_of(outer=node), "sync")

    assert seen.leaks == []


@pytest.mark.parametrize("colour", COLOURS)
def test_what_cannot_be_redacted_is_not_shown(colour, exits, monkeypatch):
    """A redactor that raises conceals, and the run ends well."""

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError(text("raised"))

    monkeypatch.setattr(Redactor, "redact", broken)
    seen = read(exits.scope, graph_of(outer=calling(speaking())), colour)

    assert seen.output == {"messages": FAILED}
    assert FAILED in seen.said("text") + repr(seen.events)
    assert seen.leaks == []


@pytest.mark.parametrize("colour", COLOURS)
def test_a_redaction_that_cannot_begin_shows_nothing(colour, exits, monkeypatch):
    """Not an event gets by."""
    monkeypatch.setattr(Redactor, "begin", lambda *_, **__: 1 / 0)
    seen = read(exits.scope, graph_of(outer=calling(speaking())), colour)

    assert seen.output == {"messages": FAILED}
    assert seen.leaks == []


def test_for_the_graph_and_for_the_run_is_once(exits):
    """Two of them on one stream do what one does."""
    model = Speaking(says=f"{OPENING}My name is Rosalind Quimby")
    seen = read(exits.scope, graph_of(outer=calling(model)), "sync", exits.scope.redacted_stream())

    assert seen.said("text") == f"{OPENING}My name is <PERSON>"


def test_switched_off_it_does_nothing():
    """As everything of ours."""
    scope = Mnemoscope(load_settings(disabled=True))
    seen = read(scope, graph_of(outer=calling(Speaking(says="My name is Rosalind"))), "sync")

    assert seen.said("text") == "My name is Rosalind"
