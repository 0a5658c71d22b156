"""Every field of every message format, at every depth: structure is told by place, not by name."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypedDict

import langchain_core.messages
import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, BaseMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.store.sqlite import SqliteStore
from langgraph.stream.transformers import (
    CheckpointsTransformer,
    CustomTransformer,
    DebugTransformer,
    TasksTransformer,
    UpdatesTransformer,
)
from langgraph.types import Command, Interrupt, Send, interrupt
from pydantic import BaseModel

from mnemoscope.memory import context
from mnemoscope.memory.privacy.engine import redactor
from mnemoscope.memory.privacy.engine.cache import RedactionCache, T
from tests.kit.canaries import email, key, leaks

pytestmark = pytest.mark.filterwarnings(
    "ignore:The v3 streaming protocol", "ignore:Pydantic serializer warnings"
)

KEYS = (
    *("id", "type", "index", "signature", "tool_call_id", "tool_use_id", "name", "role", "key"),
    *("ns", "node", "content", "data", "args", "arguments", "input", "thread_id", "run_id"),
    *("checkpoint_ns", "checkpoint_id", "langgraph_node", "status", "event", "value"),
)
"""Names that some format has for structure, or for what holds it."""

BLOCK_FIELDS = (
    *("id", "index", "signature", "data", "name", "text", "title", "url", "context", "mime_type"),
    *("file_id", "base64", "reasoning", "thinking", "encrypted_content", "tool_use_id", "call_id"),
    *("tool_call_id", "status", "partial_json", "args", "output", "refusal", "error"),
)
BLOCK_TYPES = (
    *("text", "text-plain", "reasoning", "tool_call", "tool_call_chunk", "invalid_tool_call"),
    *("server_tool_call", "server_tool_call_chunk", "server_tool_result", "image", "audio"),
    *("video", "file", "document", "non_standard", "thinking", "redacted_thinking", "tool_use"),
    *("server_tool_use", "tool_result", "web_search_tool_result", "input_text", "output_text"),
    *("image_url", "input_audio", "input_image", "function_call", "function_call_output", "odd"),
)
UNHURRIED = {"deadline_checkpoint_s": 0, "deadline_resume_s": 0, "deadline_remember_s": 0}
DEPTHS, SHALLOW = "abcd", "a"


class Planted:
    """
    Values with an address of its own in every place.

    Attributes:
        places: Marks of all the addresses.
    """

    def __init__(self) -> None:
        self.places: set[str] = set()

    def mail(self, *place: str) -> str:
        """Return an address that names its place."""
        mark = "".join(each for each in "".join(place).lower() if "a" <= each <= "z")
        self.places.add(mark)
        return email(mark)

    def deep(self, place: str, depths: str = DEPTHS) -> dict[str, Any]:
        """Return content with every name of structure in it, at each of some depths."""
        held: dict[str, Any] = {}
        for depth in reversed(depths):
            level = {each: self.mail(place, depth, each) for each in KEYS}
            held = {**level, "more": [held], self.mail(place, depth, "as key"): 1}
        return held

    def block(self, kind: str) -> dict[str, Any]:
        """Return a content block of a type, with all fields that any has."""
        held = {each: self.mail("block", kind, each) for each in BLOCK_FIELDS}
        as_json = self.mail("block", kind, "json")
        inner = {"type": "text", "text": self.mail("block", kind, "inner"), "id": "b-1"}
        return {
            **held,
            "type": kind,
            "input": self.deep(f"block {kind} input", SHALLOW),
            "extras": self.deep(f"block {kind} extras", SHALLOW),
            "value": self.deep(f"block {kind} value", SHALLOW),
            "content": [inner],
            "arguments": json.dumps({"id": as_json}),
            "source": {"type": "base64", "data": self.mail("block", kind, "source")},
            "annotations": [self.deep(f"block {kind} annotations", SHALLOW)],
            "summary": [{"type": "summary_text", "text": self.mail("block", kind, "summary")}],
            "image_url": {"url": self.mail("block", kind, "image")},
        }

    def call(self, place: str, *, written: bool = False) -> dict[str, Any]:
        """Return a tool call, its arguments written as JSON or not."""
        args = self.deep(f"{place} args")
        return {
            "name": self.mail(place, "call name"),
            "args": json.dumps(args) if written else args,
            "id": self.mail(place, "call id"),
        }

    def openai_call(self, place: str) -> dict[str, Any]:
        """Return a tool call as OpenAI has it."""
        function = {
            "name": self.mail(place, "function"),
            "arguments": json.dumps(self.deep(f"{place} arguments")),
        }
        held = {"id": self.mail(place, "openai id"), "type": "function", "function": function}
        return held | {"index": self.mail(place, "openai index")}

    def message(self, kind: type[BaseMessage]) -> BaseMessage:
        """Return a message of a class with all of its fields planted."""
        place, fields = kind.__name__, kind.model_fields
        if place == "RemoveMessage":
            return kind(id=self.mail(place, "id"))
        given: dict[str, Any] = {
            "content": [{"type": "text", "text": self.mail(place, "text")}, self.mail(place, "s")],
            "additional_kwargs": {
                **self.deep(f"{place} kwargs"),
                "tool_calls": [self.openai_call(place)],
                "function_call": {"name": "f", "arguments": json.dumps([self.mail(place, "fc")])},
            },
            "response_metadata": self.deep(f"{place} response", SHALLOW),
            **{each: self.mail(place, each) for each in ("id", "name")},
            "odd": self.deep(f"{place} odd", SHALLOW),
        }
        optional = {
            "role": lambda: self.mail(place, "role"),
            "tool_call_id": lambda: self.mail(place, "tool call id"),
            "artifact": lambda: self.deep(f"{place} artifact"),
            "tool_calls": lambda: [self.call(f"{place} calls")],
            "invalid_tool_calls": lambda: [
                {**self.call(f"{place} invalid", written=True), "error": self.mail(place, "error")}
            ],
        }
        if place == "AIMessageChunk":
            del optional["tool_calls"], optional["invalid_tool_calls"]
            chunk = {**self.call(f"{place} chunks", written=True), "index": 0}
            optional["tool_call_chunks"] = lambda: [chunk]
        return kind(**given, **{n: make() for n, make in optional.items() if n in fields})

    def everything(self) -> dict[str, Any]:
        """Return all formats."""
        named = [getattr(langchain_core.messages, n) for n in langchain_core.messages.__all__]
        kinds = {each for each in named if isinstance(each, type) and issubclass(each, BaseMessage)}
        concrete = [each for each in kinds if each not in {BaseMessage, BaseMessageChunk}]
        assert len(concrete) >= 13
        blocks = [self.block(each) for each in BLOCK_TYPES]
        return {
            "messages": [self.message(each) for each in sorted(concrete, key=lambda k: k.__name__)],
            "blocks": [AIMessage(blocks), {"role": "user", "content": self.twice(blocks)}],
            "dicts": [
                {
                    "role": self.mail("dict role"),
                    "content": self.mail("dict content"),
                    "id": self.mail("dict id"),
                    "name": self.mail("dict name"),
                    "tool_call_id": self.mail("dict tool call"),
                    "tool_calls": [self.openai_call("dict")],
                    "odd": self.deep("dict odd"),
                }
            ],
            "interrupt": Interrupt(value=self.deep("interrupt"), id=self.mail("interrupt id")),
            "send": Send("target", self.deep("send")),
            "command": Command(update=self.deep("update"), resume=self.deep("resume")),
            "state": self.deep("state"),
            "model": Model(id=self.mail("model"), held=self.deep("in model")),
            "data": Data(id=self.mail("dataclass"), held=self.deep("in dataclass")),
            "tuple": Pair(self.mail("named tuple"), self.deep("in tuple")),
        }

    @staticmethod
    def twice(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return copies of blocks."""
        return [dict(each) for each in blocks]


class Model(BaseModel):
    id: str
    held: dict[str, Any]


@dataclass(frozen=True)
class Data:
    id: str
    held: dict[str, Any]


class Pair(NamedTuple):
    id: str
    held: dict[str, Any]


class State(TypedDict, total=False):
    held: Any
    messages: Annotated[list[Any], add_messages]


class Said(TypedDict, total=False):
    messages: list[Any]


class Calling(BaseChatModel):
    """A model that calls the tool of a name, once."""

    calls: list[dict[str, Any]]
    named: str = ""

    @property
    def _llm_type(self) -> str:
        return "calling"

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        metadata = {"model_name": self.named, "id": self.named}
        said = AIMessage("Hello", tool_calls=self.calls, response_metadata=metadata)
        return ChatResult(generations=[ChatGeneration(message=said)])


def graph_of(planted: Planted, saver: Any, store: Any) -> Any:
    """Return a graph whose names, tools, state, writes and questions are planted."""
    tool = StructuredTool.from_function(
        lambda id: planted.mail("tool result"),  # noqa: A006 - the name that is to be tried
        name=key("tool"),
        description="x",
    )
    call = {"name": key("tool"), "args": {"id": planted.mail("live args")}}
    calls = [call | {"id": planted.mail("live id")}]
    model = Calling(calls=calls, named=planted.mail("model name"))

    def first(_state: State) -> Any:
        get_stream_writer()(planted.deep("custom"))
        store.put(("notes",), "k", planted.deep("store"))
        return {"messages": [model.invoke("hi")]}

    def bulk(_state: State) -> Any:
        return {"held": planted.everything()}

    def asks(_state: State) -> Any:
        answer = interrupt(planted.deep("question"))
        return Command(update={"held": answer})

    def target(state: Any) -> Any:
        return {"held": state}

    inner = StateGraph(State)
    inner.add_node(key("inner"), target)
    inner.add_edge(START, key("inner"))
    builder = StateGraph(State)
    for name, node in {
        "first": first,
        "tools": ToolNode([tool]),
        "bulk": bulk,
        "target": target,
        "nested": inner.compile(),
    }.items():
        builder.add_node(key(name), node)
    builder.add_node(key("asks"), asks, input_schema=Said)
    builder.add_edge(START, key("first"))
    builder.add_edge(key("first"), key("tools"))
    builder.add_edge(key("tools"), key("nested"))
    builder.add_edge(key("nested"), key("bulk"))
    builder.add_edge(key("bulk"), key("asks"))
    builder.add_conditional_edges(
        key("asks"), lambda _: [Send(key("target"), planted.deep("live send"))], [key("target")]
    )
    builder.add_edge(key("target"), END)
    return builder.compile(checkpointer=saver, name=key("graph"))


TRANSFORMERS = (UpdatesTransformer, CustomTransformer, TasksTransformer, CheckpointsTransformer)


METHODS = {"values", "updates", "custom", "checkpoints", "messages", "lifecycle", "output"}


class Shown:
    """
    What the reader of a run saw, as bytes.

    Attributes:
        methods: Kinds of events.
    """

    def __init__(self) -> None:
        self.methods: set[str] = set()
        self._parts: list[bytes] = []
        self._serde = JsonPlusSerializer(pickle_fallback=True)

    def add(self, event: Any) -> None:
        """Add an event, or what the run returned."""
        if isinstance(event, dict):
            self.methods.add(event.get("method", "output"))
        self._parts.append(self._serde.dumps_typed(event)[1])

    @property
    def held(self) -> bytes:
        """All of it."""
        return b"".join(self._parts)


def config_of(planted: Planted) -> dict[str, Any]:
    """Return a config with names and metadata of the caller's."""
    return {
        "run_name": planted.mail("run name"),
        "tags": [planted.mail("tag")],
        "metadata": {
            each: planted.mail("metadata", each) for each in KEYS if each != "langgraph_node"
        },
        "configurable": {"thread_id": key("thread")},
    }


async def run(scope: Any, colour: str, way: str, saver: Any, store: Any) -> tuple[Planted, Shown]:
    """Run the graph to its question and, with an answer, to its end."""
    planted, shown = Planted(), Shown()
    graph = graph_of(planted, saver, store)
    seen = [scope.redacted_stream(), *TRANSFORMERS]
    if way == "usage":
        seen += [scope.usage(), DebugTransformer]
    else:
        graph = scope.runnable(graph)
    opening = {"held": planted.deep("input"), "messages": [HumanMessage(planted.mail("said"))]}
    with context(tenant="acme", customer=key("customer"), agent=key("agent")):
        for given in (opening, Command(resume=planted.deep("answer"))):
            options = {"version": "v3", "transformers": seen}
            if colour == "sync":
                await asyncio.to_thread(_read, graph, given, config_of(planted), options, shown)
            else:
                events = await graph.astream_events(given, config_of(planted), **options)
                async for each in events:
                    shown.add(each)
                shown.add(await events.output())
    return planted, shown


def _read(graph: Any, given: Any, config: Any, options: Any, shown: Shown) -> None:
    events = graph.stream_events(given, config, **options)
    for each in events:
        shown.add(each)
    shown.add(events.output)


@asynccontextmanager
async def databases(exits: Any, colour: str) -> AsyncIterator[tuple[Any, Any]]:
    """Yield a guarded saver and a guarded store on disk."""
    store = sqlite3.connect(
        exits.stores / "store.db", check_same_thread=False, isolation_level=None
    )
    on_disk = SqliteStore(store)
    on_disk.setup()
    path = str(exits.stores / "checkpoints.db")
    try:
        if colour == "sync":
            connection = sqlite3.connect(path, check_same_thread=False)
            saver = SqliteSaver(connection)
            yield exits.scope.checkpointer(saver), exits.scope.store(on_disk)
            exits.close()
            connection.close()
        else:
            async with AsyncSqliteSaver.from_conn_string(path) as asynchronous:
                yield exits.scope.checkpointer(asynchronous), exits.scope.store(on_disk)
                exits.close()
    finally:
        store.close()


@pytest.fixture(autouse=True)
def room_for_all_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Let a redactor remember all places of a run, each of which is said many times over.

    They are more than a host's cache holds: all but the first would be searched again and again.
    """
    monkeypatch.setattr(redactor, "RedactionCache", _RoomyCache)


class _RoomyCache(RedactionCache[T]):
    """A cache for all places of a run."""

    def __init__(self, **_given: int) -> None:
        super().__init__(entries=1 << 17, chars=1 << 27)


@pytest.mark.parametrize(("colour", "way"), [("sync", "usage"), ("async", "runnable")])
async def test_no_place_of_any_format_comes_out(colour, way, make_exits):
    """Neither to a sink nor into the databases nor to the reader of the stream, resumed or not."""
    exits = make_exits(**UNHURRIED)
    async with databases(exits, colour) as (saver, store):
        planted, shown = await run(exits.scope, colour, way, saver, store)
        found = exits.leaks()

    assert len(planted.places) > 5_000
    assert shown.methods >= METHODS
    assert b"<EMAIL_ADDRESS" in shown.held
    assert leaks(shown.held, keys=True) == []
    assert found == []


@pytest.mark.long
async def test_every_place_comes_out_unredacted(make_exits):
    """The control: each place is in the database, in the stream or in a sink, where all is kept."""
    exits = make_exits(redacts=False, **UNHURRIED)
    async with databases(exits, "sync") as (saver, store):
        planted, shown = await run(exits.scope, "sync", "usage", saver, store)
        found = exits.leaked_places()
    found |= {each.rpartition(" ")[2] for each in leaks(shown.held)}

    assert planted.places - found == set()
