"""What goes through runs, on spans: redacted where content is opted in, else how much it was."""

from __future__ import annotations

import json
from typing import Any, TypedDict

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from mnemoscope.adapters.langgraph.runs.content import MOST_CHARS, copied
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.langsmith.runs import runs_of
from mnemoscope.telemetry.otlp.conventions import semconv
from mnemoscope.telemetry.otlp.conventions.attributes import span_attributes
from tests.kit.patience import GIVE_UP_S

MAIL = "ada@example.com"
TAG = "<EMAIL_ADDRESS>"
CALL: Any = {"name": "send", "id": "call-1", "args": {"to": MAIL}, "type": "tool_call"}


class State(TypedDict, total=False):
    said: str


class Model(BaseChatModel):
    """A model that answers with a call of a tool."""

    @property
    def _llm_type(self) -> str:
        return "calling"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        message = AIMessage(f"I write to {MAIL}.", tool_calls=[CALL])
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


def write(state: State) -> Any:
    """Ask a model, call a tool, and change the state that was given."""
    asked = [SystemMessage("Be brief."), HumanMessage(state["said"]), AIMessage("", id="m-1")]
    Model().invoke([*asked, ToolMessage("none", tool_call_id="call-0")])
    send.invoke({"to": MAIL})
    state["said"] = "changed"
    return Command(update={"said": f"wrote to {MAIL}"})


def spans(fn: Any = write, given: Any = None, **settings: Any) -> dict[str, dict[str, Any]]:
    """Run a graph of one node; return the attributes of its spans, by operation."""
    return {
        each.operation: span_attributes(each, content=True) for each in ran(fn, given, settings)
    }


def ran(fn: Any, given: Any, settings: dict[str, Any]) -> list[Any]:
    """Run a graph of one node; return its events."""
    builder = StateGraph(State)
    builder.add_node("write", fn)
    builder.add_edge(START, "write")
    with scope_for_tests(**settings) as (scope, sink):
        scope.runnable(builder.compile()).invoke(given or {"said": f"Write to {MAIL}, please."})
        scope.flush(GIVE_UP_S)
        return list(sink.events)


@pytest.fixture(scope="module")
def shown() -> dict[str, dict[str, Any]]:
    """Return the spans of a run whose sink is opted in to content."""
    return spans(content_sinks="otlp")


def test_a_node_and_its_graph_show_the_state_before_and_the_update(shown):
    """As it was when the node began, whatever the node did to it."""
    for operation in ("execute_node", "invoke_agent"):
        span = shown[operation]
        assert json.loads(span[semconv.CONTENT]) == {"said": f"Write to {TAG}, please."}
        assert span[semconv.INPUT_MIME_TYPE] == "application/json"
    assert json.loads(shown["execute_node"][semconv.OUTPUT_VALUE]) == {
        "update": {"said": f"wrote to {TAG}"}
    }
    assert json.loads(shown["invoke_agent"][semconv.OUTPUT_VALUE]) == {"said": f"wrote to {TAG}"}


def test_a_model_has_its_messages_by_the_conventions(shown):
    """Roles and parts, in the schema of the GenAI conventions."""
    span = shown["chat"]

    assert json.loads(span[semconv.INPUT_MESSAGES]) == [
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "user", "parts": [{"type": "text", "content": f"Write to {TAG}, please."}]},
        {"role": "assistant", "parts": []},
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "call-0", "response": "none"}],
        },
    ]
    (answer,) = json.loads(span[semconv.OUTPUT_MESSAGES])
    assert answer["role"] == "assistant"
    assert [each["type"] for each in answer["parts"]] == ["text", "tool_call"]
    assert {"id": "call-1", "name": "send"}.items() <= answer["parts"][1].items()


def test_a_model_has_its_messages_as_viewers_draw_them(shown):
    """An attribute for each part, by OpenInference."""
    span = shown["chat"]

    assert span["llm.input_messages.1.message.role"] == "user"
    assert span["llm.input_messages.1.message.content"] == f"Write to {TAG}, please."
    assert span["llm.input_messages.3.message.tool_call_id"] == "call-0"
    assert span["llm.output_messages.0.message.content"] == f"I write to {TAG}."
    call = "llm.output_messages.0.message.tool_calls.0.tool_call"
    assert span[f"{call}.function.name"] == "send"
    assert MAIL not in span[f"{call}.function.arguments"]


def test_a_tool_has_its_arguments_and_its_result(shown):
    """By both conventions."""
    span = shown["execute_tool"]

    assert json.loads(span[semconv.TOOL_CALL_ARGUMENTS]).keys() == {"to"}
    assert json.loads(span[semconv.TOOL_CALL_RESULT]) == f"sent to {TAG}"
    assert span[semconv.OUTPUT_VALUE] == span[semconv.TOOL_CALL_RESULT]


def test_nothing_of_a_person_is_in_any_of_it(shown):
    """Wherever it stands."""
    assert MAIL not in repr(shown)


def test_a_model_that_completes_text_is_shown_as_a_conversation():
    """Prompt and completion are messages of one part."""

    def complete(state: State) -> State:
        return {"said": FakeListLLM(responses=["Done."]).invoke(state["said"])}

    span = spans(complete, content_sinks="otlp")["chat"]

    assert span["llm.input_messages.0.message.content"] == f"Write to {TAG}, please."
    assert span["llm.output_messages.0.message.content"] == "Done."


def test_elsewhere_it_is_how_much():
    """Nobody asked for content: events have none, and a tool's span says how long its texts are."""
    events = ran(write, None, {})
    (span,) = (span_attributes(each) for each in events if each.operation == "execute_tool")

    assert [each for each in events if each.given or each.answer or each.content] == []
    assert span[semconv.CONTENT].endswith(" characters")
    assert span[semconv.OUTPUT_VALUE] == f"{len(f'sent to {MAIL}')} characters"


def test_a_sink_that_is_not_opted_in_shows_none_of_what_another_is_sent():
    """One event goes to all of them."""
    for event in ran(write, None, {"content_sinks": "langsmith"}):
        span = span_attributes(event)
        assert "letter" not in repr(span)
        assert TAG not in repr(span)
        assert not {semconv.INPUT_MESSAGES, semconv.TOOL_CALL_RESULT} & span.keys()


def test_langsmith_has_inputs_and_outputs_where_it_is_opted_in():
    """Messages of a model, the state of a node; without the opt-in neither."""
    events = ran(write, None, {"content_sinks": "langsmith"})

    shown = {each["name"]: each for each in runs_of(events, "p", content=True)}
    assert shown["unknown"]["inputs"]["messages"][1]["content"] == f"Write to {TAG}, please."
    assert shown["unknown"]["outputs"]["messages"][0]["role"] == "assistant"
    assert shown["execute_node langgraph.node"]["inputs"] == {"said": f"Write to {TAG}, please."}
    for each in runs_of(events, "p", content=False):
        assert not each["inputs"]
        assert TAG not in repr(each)


def test_of_a_long_conversation_the_end_is_kept():
    """The latest message is what was asked; the copy is bounded, and says that it is cut."""
    messages = [HumanMessage(f"{place} " + "tea " * 200) for place in range(100)]

    copy = copied({"messages": messages})["messages"]

    assert copy[0] == "[TRUNCATED]"
    assert copy[-1]["content"].startswith("99 ")
    assert len(json.dumps(copy)) < 2 * MOST_CHARS


def test_a_cut_leaves_no_half_of_an_identifier():
    """What is half cut away would be found by no detector."""
    for shift in range(len(MAIL)):
        text = "x " * ((MOST_CHARS - shift) // 2) + MAIL
        copy = copied(text)
        assert MAIL in copy or "ada@" not in copy


class Strange:
    """An object that quotes a person whenever it is looked at."""

    @property
    def __dict__(self) -> Any:
        raise ValueError(MAIL)


@pytest.mark.parametrize("given", [Strange(), {"a": {MAIL: Strange()}}, [Strange] * 2, b"x"])
def test_what_cannot_be_looked_into_is_named_by_its_type(given):
    """A run is not disturbed by what goes through it."""
    assert "Strange(" not in json.dumps(copied(given))


def test_what_cannot_be_redacted_is_left_out(monkeypatch):
    """And costs the run nothing."""

    def fail(*_: Any) -> Any:
        raise ValueError(MAIL)

    monkeypatch.setattr("mnemoscope.adapters.langgraph.runs.meter.redacted", fail)
    events = ran(write, None, {"content_sinks": "otlp"})

    assert {each.operation for each in events} == {
        *("invoke_agent", "execute_node", "execute_tool", "chat")
    }
    assert [each for each in events if each.given or each.answer] == []
