"""Tokens that only the provider's own report has, in each place where integrations leave it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel, BaseLLM
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult, Generation, LLMResult
from langgraph.graph import START, StateGraph

from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S

ALL = (100, 20, 40, 7, 12)
"""Input, output, cached, written to the cache, reasoning."""

REPORTS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "OpenAI": (
        {
            "token_usage": {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 7},
                "completion_tokens_details": {"reasoning_tokens": 12},
            }
        },
        ALL,
    ),
    "OpenAI, an older model": (
        {"token_usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}},
        (100, 20, 0, 0, 0),
    ),
    "OpenAI's responses": (
        {
            "usage": {
                "input_tokens": 100,
                "output_tokens": 20,
                "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 7},
                "output_tokens_details": {"reasoning_tokens": 12},
            }
        },
        ALL,
    ),
    "DeepSeek": (
        {
            "token_usage": {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "prompt_cache_hit_tokens": 40,
                "prompt_cache_miss_tokens": 60,
            }
        },
        (100, 20, 40, 0, 0),
    ),
    "Anthropic": (
        {
            "usage": {
                "input_tokens": 53,
                "output_tokens": 20,
                "cache_read_input_tokens": 40,
                "cache_creation_input_tokens": 7,
                "output_tokens_details": {"thinking_tokens": 12},
            }
        },
        ALL,
    ),
    "Bedrock": (
        {
            "usage": {
                "inputTokens": 53,
                "outputTokens": 20,
                "cacheReadInputTokens": 40,
                "cacheWriteInputTokens": 7,
            }
        },
        (100, 20, 40, 7, 0),
    ),
    "Bedrock's metrics": (
        {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 100, "outputTokenCount": 20}},
        (100, 20, 0, 0, 0),
    ),
    "Gemini": (
        {
            "usage_metadata": {
                "prompt_token_count": 100,
                "candidates_token_count": 8,
                "thoughts_token_count": 12,
                "cached_content_token_count": 40,
            }
        },
        (100, 20, 40, 0, 12),
    ),
    "Cohere": ({"token_count": {"input_tokens": 100, "output_tokens": 20}}, (100, 20, 0, 0, 0)),
    "Ollama": ({"prompt_eval_count": 100, "eval_count": 20, "done": True}, (100, 20, 0, 0, 0)),
}


class ChatModel(BaseChatModel):
    """A model that reports in one place, and not in LangChain's form."""

    about: dict[str, Any] | None = None
    output: dict[str, Any] | None = None

    @property
    def _llm_type(self):
        return "reporting"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        message = AIMessage("Hi", response_metadata=self.about or {})
        return ChatResult(generations=[ChatGeneration(message=message)], llm_output=self.output)


class TextModel(BaseLLM):
    """A model that completes text."""

    output: dict[str, Any] | None = None

    @property
    def _llm_type(self):
        return "completing"

    def _generate(self, prompts, stop=None, run_manager=None, **kwargs):
        said = [[Generation(text="Hi")] for _ in prompts]
        return LLMResult(generations=said, llm_output=self.output)


def usage_of(model):
    """Return the usage that a node's call of *model* is told with."""
    builder = StateGraph(dict)
    builder.add_node("draft", lambda _state: {"said": str(model.invoke("Hello"))})
    builder.add_edge(START, "draft")
    with scope_for_tests() as (scope, sink):
        scope.runnable(builder.compile()).invoke({})
        scope.flush(timeout_s=GIVE_UP_S)
        (usage,) = (each.usage for each in sink.events if each.operation == "chat")
    return usage


def counts(usage):
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
    )


PLACES = {
    "response_metadata": lambda report: ChatModel(about=report),
    "llm_output": lambda report: ChatModel(output=report),
    "llm_output of a completion": lambda report: TextModel(output=report),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("provider", REPORTS)
def test_tokens_are_counted_wherever_they_are_reported(provider, place):
    """Input includes what caches gave and took, output includes reasoning."""
    report, expected = REPORTS[provider]

    usage = usage_of(PLACES[place]({**report, "model_name": "family-1"}))

    assert (counts(usage), usage.reported, usage.model) == (expected, True, "family-1")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "report",
    [{}, {"token_usage": {}}, {"token_usage": {"tokens": 5}}, {"usage": "120"}],
    ids=["nothing", "an empty report", "a name of its own", "text"],
)
def test_what_is_not_understood_is_unreported(report, place):
    """And not a usage of zero."""
    usage = usage_of(PLACES[place](report))

    assert (counts(usage), usage.reported, usage.cost_usd) == ((0,) * 5, False, None)
