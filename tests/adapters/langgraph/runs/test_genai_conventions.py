"""
What the GenAI conventions list for each span, against the spans of a real agent.

`genai_spans.json` has the attributes of each kind of span and their levels, as the conventions have
them, without those that are opted in to. Each is set here, or it stands below why it is not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from mnemoscope.memory import context
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.otlp.conventions.attributes import span_attributes
from tests.kit.dropped_counts import dropped_count
from tests.kit.patience import GIVE_UP_S

LISTED = json.loads(Path(__file__).with_name("genai_spans.json").read_text("utf-8"))["spans"]

_OF_ITS_MODELS = "a run may call several models: the spans below it have theirs"
_NOT_HERE = "not of this call"
_UNREPORTED = "no integration of LangChain's reports it"
NOT_SET = {
    "chat": {
        "error.type": _NOT_HERE,
        "gen_ai.output.type": "providers name output formats each in another way",
        "gen_ai.request.stop_sequences": "text of the application's, and so content",
        "gen_ai.request.stream": _NOT_HERE,
        "gen_ai.request.top_k": "a parameter that OpenAI has not",
        "gen_ai.response.time_to_first_chunk": _NOT_HERE,
        "gen_ai.usage.text.input_tokens": _UNREPORTED,
        "gen_ai.usage.text.output_tokens": _UNREPORTED,
        "gen_ai.usage.image.input_tokens": _UNREPORTED,
        "gen_ai.usage.video.input_tokens": _UNREPORTED,
    },
    "execute_tool": {
        "error.type": _NOT_HERE,
        "gen_ai.tool.description": "text of the application's, and so content",
        "gen_ai.tool.type": "LangChain does not say where a tool works",
    },
    "invoke_agent": {
        "error.type": _NOT_HERE,
        "gen_ai.agent.id": "LangGraph has none",
        "gen_ai.agent.description": "LangGraph has none",
        "gen_ai.agent.version": "LangGraph has none",
        "gen_ai.data_source.id": "LangGraph has none",
        **{
            name: _OF_ITS_MODELS
            for name in LISTED["invoke_agent"]
            if name.startswith(("gen_ai.request.", "gen_ai.response.", "gen_ai.usage."))
            or name in ("gen_ai.provider.name", "gen_ai.output.type")
        },
    },
}

ON_EVERY_SPAN = {"gen_ai.conversation.id"}
"""By which all spans of one conversation are found."""


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"Sunny in {city}"


def answer(request: httpx.Request) -> httpx.Response:
    """Answer as OpenAI does: with a call of the tool first, then with two texts."""
    is_first = len(json.loads(request.content)["messages"]) == 1
    call = {"name": "weather", "arguments": '{"city": "Rome"}'}
    calls = [{"id": "call_1", "type": "function", "function": call}] if is_first else None
    message = {"role": "assistant", "content": "Take a hat.", "tool_calls": calls}
    ends = ["tool_calls"] if is_first else ["stop", "length"]
    return httpx.Response(
        200,
        json={
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-4o-mini-2024-07-18",
            "choices": [
                {"index": place, "finish_reason": end, "message": message}
                for place, end in enumerate(ends)
            ],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "total_tokens": 120,
                "prompt_tokens_details": {
                    "cached_tokens": 40,
                    "cache_write_tokens": 7,
                    "audio_tokens": 5,
                },
                "completion_tokens_details": {"reasoning_tokens": 3, "audio_tokens": 2},
            },
        },
    )


@pytest.fixture(scope="module")
def spans() -> dict[str, dict[str, Any]]:
    """Return the attributes of the last span of each operation of an agent's run."""
    http = httpx.Client(transport=httpx.MockTransport(answer))
    model = ChatOpenAI(
        model="gpt-4o-mini",
        api_key="key",
        base_url="https://ada:secret@gateway.example:8443/v1",
        temperature=0.2,
        max_tokens=55,
        top_p=0.9,
        frequency_penalty=0.5,
        presence_penalty=0.25,
        seed=7,
        n=2,
        http_client=http,
    )
    asked = {"messages": [{"role": "user", "content": "A hat?"}]}
    with scope_for_tests() as (scope, sink), context(tenant="acme", agent="sales", run="t-1"):
        scope.runnable(create_agent(model, [weather], name="concierge")).invoke(asked)
        scope.flush(timeout_s=GIVE_UP_S)
        return {each.operation: {**span_attributes(each)} for each in sink.events}


@pytest.mark.parametrize("operation", LISTED)
def test_each_attribute_of_a_span_is_set_or_it_stands_here_why_not(spans, operation):
    """And what stands here is not set."""
    found, not_set = spans[operation], {*NOT_SET[operation]}
    if operation == "chat" and dropped_count("langchain_openai"):
        not_set.add("gen_ai.usage.cache_creation.input_tokens")

    assert {name for name in LISTED[operation] if name not in found} == not_set


@pytest.mark.parametrize("operation", LISTED)
def test_a_span_has_no_attribute_that_is_another_kinds(spans, operation):
    """The conventions' names alone, where they are listed for it."""
    names = {name for name in spans[operation] if name.startswith(("gen_ai.", "server."))}

    assert names <= {*LISTED[operation]} | ON_EVERY_SPAN


def test_a_model_call_is_told_as_it_was_made(spans):
    """With the values of its request and its answer, and no login of the server's."""
    assert spans["chat"].items() >= {
        ("gen_ai.request.model", "gpt-4o-mini"),
        ("gen_ai.response.model", "gpt-4o-mini-2024-07-18"),
        ("gen_ai.response.id", "chatcmpl-1"),
        ("gen_ai.request.temperature", 0.2),
        ("gen_ai.request.max_tokens", 55),
        ("gen_ai.request.seed", 7),
        ("gen_ai.request.choice.count", 2),
        ("gen_ai.usage.audio.input_tokens", 5),
        ("server.address", "gateway.example"),
        ("server.port", 8443),
    }
    assert spans["chat"]["gen_ai.response.finish_reasons"] == ["stop", "length"]
    assert spans["execute_tool"]["gen_ai.tool.call.id"] == "call_1"


def test_below_an_agent_no_span_names_another(spans):
    """The context's agent is said under a name of ours."""
    named = {each["gen_ai.agent.name"] for each in spans.values() if "gen_ai.agent.name" in each}

    assert named == {"concierge"}
    assert {each["mnemoscope.agent"] for each in spans.values()} == {"sales"}
