"""Details of usage, by the names that integrations of providers give them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import add_usage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from mnemoscope.adapters.langgraph.runs.model_calls import StreamedUsage, counts_of
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S

TOKENS = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
INPUT = [
    # as langchain-openai, -groq, -fireworks, -google-genai and others have it
    ({"cache_read": 40}, 40, 0),
    ({"cache_read": 40, "cache_creation": 10}, 40, 10),
    # langchain-openai 1.7: a service tier before each, and what is left under its own name
    ({"flex_cache_read": 40, "flex": 60}, 40, 0),
    ({"priority_cache_read": 40, "priority_cache_creation": 10, "priority": 60}, 40, 10),
    # langchain-anthropic 1.7: by how long it is kept, with a generic count of 0
    ({"cache_read": 40, "cache_creation": 0, "ephemeral_5m_input_tokens": 10}, 40, 10),
    (
        {
            "cache_read": 0,
            "cache_creation": 0,
            "ephemeral_5m_input_tokens": 3,
            "ephemeral_1h_input_tokens": 7,
        },
        0,
        10,
    ),
    # what is none of these
    ({"audio": 12, "text": 5, "input_tokens": 9}, 0, 0),
    ({"cache_read": None, "cache_creation": "10", 3: 4}, 0, 0),
    ({}, 0, 0),
]
OUTPUT = [
    ({"reasoning": 12}, 12),
    ({"flex_reasoning": 12, "flex": 8}, 12),
    ({"priority_reasoning": 12, "audio": 1}, 12),
    ({"audio": 12}, 0),
    ({"reasoning": True}, 0),
]


def reported(into=None, out=None):
    return {
        "input_tokens": 100,
        "output_tokens": 20,
        "total_tokens": 120,
        "input_token_details": into or {},
        "output_token_details": out or {},
    }


@pytest.mark.parametrize(("details", "cached", "written"), INPUT)
def test_details_of_input(details, cached, written):
    """Read from and written to a cache, whatever stands around the name."""
    counts = counts_of(reported(into=details))

    assert (counts["cached_tokens"], counts["cache_write_tokens"]) == (cached, written)
    assert counts["input_tokens"] == 100


@pytest.mark.parametrize(("details", "reasoning"), OUTPUT)
def test_details_of_output(details, reasoning):
    """Reasoning, whatever stands before it."""
    assert counts_of(reported(out=details))["reasoning_tokens"] == reasoning


@pytest.mark.parametrize(("details", "cached", "written"), INPUT[:6])
def test_details_of_a_stream(details, cached, written):
    """Of chunks that are summed, each counts once."""
    streamed, whole = StreamedUsage(), None
    for usage in (
        reported(into=details),
        {"input_tokens": 0, "output_tokens": 5, "total_tokens": 5},
    ):
        streamed.add(AIMessageChunk("", usage_metadata=usage))
        whole = add_usage(whole, usage)
    counts = streamed.usage(counts_of(AIMessage("", usage_metadata=whole).usage_metadata))

    assert (counts["cached_tokens"], counts["cache_write_tokens"]) == (cached, written)
    assert (counts["input_tokens"], counts["output_tokens"]) == (100, 25)


FREE = {**TOKENS, "total_cost": 0}
"""As an integration of a model without a price may have it, and as LangChain's cache does."""


class Free(BaseChatModel):
    """A model that says it costs nothing, with or without an id and an output of its provider's."""

    identity: str | None = None
    output: dict[str, Any] | None = None

    @property
    def _llm_type(self) -> str:
        return "free"

    def _generate(self, *_args: Any, **_kwargs: Any) -> ChatResult:
        message = AIMessage("There.", usage_metadata=FREE, id=self.identity)
        return ChatResult(generations=[ChatGeneration(message=message)], llm_output=self.output)


class Streaming(Free):
    """The same, chunk by chunk."""

    def _stream(self, *_args: Any, **_kwargs: Any) -> Iterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=AIMessageChunk("There.", usage_metadata=FREE, id="m-1"))


@pytest.mark.parametrize(
    ("model", "ask"),
    [
        (Free(), lambda model: model.invoke("hi")),
        (Free(identity="m-1", output={"model_name": "m"}), lambda model: model.invoke("hi")),
        (Streaming(), lambda model: list(model.stream("hi"))),
    ],
)
def test_a_cost_of_nothing_hides_no_tokens(model, ask):
    """A model that costs nothing has used what it reports."""
    with scope_for_tests() as (scope, sink):
        scope.usage()
        ask(model)
        scope.flush(GIVE_UP_S)

        assert [each.usage.input_tokens for each in sink.events] == [3]


@pytest.mark.parametrize("identity", [None, "m-1"])
def test_a_cache_has_used_nothing(identity):
    """Its answer reports what was used when it was made."""
    model = Free(identity=identity, cache=InMemoryCache())
    model.output = {"model_name": "m"}
    with scope_for_tests() as (scope, sink):
        scope.usage()
        model.invoke("hi")
        model.invoke("hi")
        scope.flush(GIVE_UP_S)

        assert [each.usage.input_tokens for each in sink.events] == [3, 0]
        assert [each.usage.reported for each in sink.events] == [True, True]
