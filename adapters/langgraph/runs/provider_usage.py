"""
Tokens as providers report them, where LangChain's integration has not put them into one form.

They stand in ``response_metadata`` of a message, or in ``llm_output`` of a result, in the
provider's own names: those of OpenAI and of what speaks like it, Anthropic, Bedrock, Gemini, Cohere
and Ollama.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...toolkit.type_guards import is_dict

_PLACES = (
    "token_usage",
    "usage",
    "usage_metadata",
    "tokenUsage",
    "token_count",
    "billed_units",
    "amazon-bedrock-invocationMetrics",
)
"""Keys below which the counts are; of Ollama they stand beside everything else."""

_INPUT = (
    *("input_tokens", "prompt_tokens", "prompt_token_count"),
    *("inputTokens", "inputTokenCount", "prompt_eval_count"),
)
_OUTPUT = (
    *("output_tokens", "completion_tokens", "candidates_token_count"),
    *("outputTokens", "outputTokenCount", "eval_count"),
)
_CACHED_WITHIN = ("cached_tokens", "cached_content_token_count", "prompt_cache_hit_tokens")
_CACHED_BESIDE = ("cache_read_input_tokens", "cacheReadInputTokens")
_WRITTEN_BESIDE = ("cache_creation_input_tokens", "cacheWriteInputTokens")
_WRITTEN_WITHIN = ("cache_write_tokens",)
_REASONING_WITHIN = ("reasoning_tokens", "thinking_tokens")
_REASONING_BESIDE = ("thoughts_token_count",)
_DETAILS = (
    *("prompt_tokens_details", "input_tokens_details"),
    *("completion_tokens_details", "output_tokens_details"),
)


def usage_reported(*places: Any) -> dict[str, Any] | None:
    """
    Return the tokens in the first of *places* that reports any, as a ``usage_metadata``.

    Args:
        *places: A ``response_metadata``, an ``llm_output``. None: there is none.

    Returns:
        Its input includes what was read from and written to caches, its output includes reasoning,
        whether the provider counts them within or beside. None: no count is found.
    """
    for place in places:
        for counts in _candidates(place):
            into, out = _first(counts, _INPUT), _first(counts, _OUTPUT)
            if into is not None or out is not None:
                return _usage(counts, into or 0, out or 0)
    return None


def _candidates(place: Any) -> Iterator[dict[str, Any]]:
    if not is_dict(place):
        return
    for name in _PLACES:
        if is_dict(found := place.get(name)):
            yield found
    yield place


def _usage(counts: dict[str, Any], into: int, out: int) -> dict[str, Any]:
    counts = dict(counts)
    for name in _DETAILS:
        if is_dict(details := counts.get(name)):
            counts = {**details, **counts}
    beside, written = _first(counts, _CACHED_BESIDE) or 0, _first(counts, _WRITTEN_BESIDE) or 0
    thoughts = _first(counts, _REASONING_BESIDE) or 0
    return {
        "input_tokens": into + beside + written,
        "output_tokens": out + thoughts,
        "input_token_details": {
            "cache_read": beside or _first(counts, _CACHED_WITHIN) or 0,
            "cache_creation": written or _first(counts, _WRITTEN_WITHIN) or 0,
        },
        "output_token_details": {"reasoning": thoughts or _first(counts, _REASONING_WITHIN) or 0},
    }


def _first(counts: dict[str, Any], names: tuple[str, ...]) -> int | None:
    """Return the first count under one of *names*, or None."""
    for name in names:
        value = counts.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None
