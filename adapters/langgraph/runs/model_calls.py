"""Tokens of a model call, read from LangChain's messages and metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
from langchain_core.utils.utils import LC_ID_PREFIX
from langgraph.types import Command

from ....telemetry.event.usage import Usage
from ....telemetry.text import json_text
from ...toolkit.type_guards import is_dict, is_list
from .details import details_of
from .provider_usage import usage_reported

# OpenAI's integration puts a service tier before a name, Anthropic's how long it keeps what was
# written to the cache.
_CACHED = re.compile(r"(?:\w+_)?cache_read")
_WRITTEN = re.compile(r"(?:\w+_)?cache_creation|ephemeral_\w+_input_tokens")
_REASONING = re.compile(r"(?:\w+_)?reasoning")


class StreamedUsage:
    """
    Usage that a model reported while it answered, chunk by chunk.

    Providers report usage in pieces, to be summed, or again and again, as the total so far.
    LangChain sums in both cases. No provider asks for the same input twice within one answer, so
    input that is reported again, with nothing less than before, is a total.

    Attributes:
        first: When the first chunk came, monotonic seconds.
        message: The latest chunk that tells of its model.
        request: The model as LangChain writes it down, and the call's parameters, if known.
        is_cumulative: Whether each report was the total so far.
    """

    __slots__ = ("__weakref__", "_last", "_sum", "first", "is_cumulative", "message", "request")

    def __init__(self, request: tuple[Any, Any] | None = None) -> None:
        self.request = request
        self.first: float | None = None
        self.message: Any = None
        self.is_cumulative = False
        self._last: dict[str, int] = {}
        self._sum: dict[str, int] = {}

    @property
    def has_reported(self) -> bool:
        """Whether a chunk told of usage."""
        return bool(self._sum)

    def add(self, message: Any) -> None:
        """Take a chunk."""
        if message.usage_metadata:
            self._add_counts(counts_of(message.usage_metadata))
        if message.response_metadata:
            self.message = message

    def _add_counts(self, counts: dict[str, int]) -> None:
        last, alone = self._last, self._last == self._sum
        grows = counts["input_tokens"] > 0 and all(counts[name] >= last[name] for name in last)
        self.is_cumulative = bool(last) and grows and (alone or self.is_cumulative)
        self._last = counts
        self._sum = {name: self._sum.get(name, 0) + count for name, count in counts.items()}

    def usage(self, reported: dict[str, int]) -> dict[str, int]:
        """Return the tokens used; *reported* is LangChain's sum of the chunks."""
        if self.is_cumulative:
            return self._last
        if not self._sum:
            return reported
        # Where it made less of them, it has let a later detail replace an earlier one.
        return {name: max(count, self._sum.get(name, 0)) for name, count in reported.items()}


def counts_of(reported: Any) -> dict[str, int]:
    """Return the five counts of a ``usage_metadata``; one that is no number is 0."""
    used = _dict(reported)
    into, out = used.get("input_token_details"), used.get("output_token_details")
    return {
        "input_tokens": _count(used.get("input_tokens")),
        "output_tokens": _count(used.get("output_tokens")),
        "cached_tokens": _sum(into, _CACHED) if into else 0,
        "cache_write_tokens": _sum(into, _WRITTEN) if into else 0,
        "reasoning_tokens": _sum(out, _REASONING) if out else 0,
    }


def _sum(reported: Any, names: re.Pattern[str]) -> int:
    """Return the tokens under all of *names*."""
    details = _dict(reported)
    return sum([_count(details[name]) for name in details if names.fullmatch(str(name))])


def with_cost(usage: Usage, cost_usd: float | None) -> Usage:
    """Return *usage*, which has no cost, with its cost."""
    if cost_usd is None:
        return usage
    return msgspec.structs.replace(usage, cost_usd=cost_usd)


def usage_in(reported: Any) -> Usage:
    """Return a ``usage_metadata`` as tokens of a model that is not named."""
    counts = counts_of(reported)
    return Usage(
        model="unknown",
        input_tokens=counts["input_tokens"],
        output_tokens=counts["output_tokens"],
        cached_tokens=counts["cached_tokens"],
        cache_write_tokens=counts["cache_write_tokens"],
        reasoning_tokens=counts["reasoning_tokens"],
    )


def message_of(response: Any) -> Any:
    """Return the message of an ``LLMResult``, or its first generation, or None."""
    rows = getattr(response, "generations", None) or ()
    for row in rows:
        for generation in row:
            return getattr(generation, "message", generation)
    return None


def is_from_cache(response: Any, message: Any, run_id: UUID) -> bool:
    """
    Tell whether LangChain's own cache has answered the call, and not its model.

    It says so by a cost of 0, as a model may that costs nothing. What it kept has the id of another
    call, or of the provider's, and nothing of the provider's around it.
    """
    if _dict(getattr(message, "usage_metadata", None)).get("total_cost") != 0:
        return False
    is_own = str(getattr(message, "id", None)).startswith(f"{LC_ID_PREFIX}-{run_id}")
    return not is_own and not getattr(response, "llm_output", None)


def text_said(response: Any) -> tuple[str, str] | None:
    """Return the text of an ``LLMResult``, and the tool calls in it, without their ids; or None."""
    for row in getattr(response, "generations", None) or ():
        for generation in row:
            text = getattr(generation, "text", None)
            tool_calls = getattr(getattr(generation, "message", None), "tool_calls", None) or ()
            calls = json_text([[each.get("name"), each.get("args")] for each in tool_calls])
            said = text if isinstance(text, str) else ""
            return (said, calls if tool_calls else "") if said or tool_calls else None
    return None


def text_answered(output: Any) -> str:
    """Return the text of what a tool answered: of the messages of a `Command`, not of their ids."""
    if isinstance(output, Command):
        update: Any = output.update
        found = update.get("messages") if is_dict(update) else ()
        return text_answered(found if is_list(found) else [])
    if is_list(output):
        return "\n".join(map(text_answered, output))
    return str(getattr(output, "content", output))


def usage_of(
    message: Any,
    streamed: StreamedUsage,
    *,
    metadata: Mapping[str, Any],
    path: Sequence[str],
    first_s: float | None,
    response: Any = None,
) -> Usage:
    """
    Return the tokens of a call.

    Args:
        message: The answer, whole or as far as it came. None: there is none.
        streamed: What its chunks reported.
        metadata: Of the call, which names the model where the answer does not.
        path: Names of the nodes around the call, outermost first.
        first_s: Seconds to the first chunk.
        response: The whole result: some integrations report in its ``llm_output`` alone.
    """
    reported = getattr(message, "usage_metadata", None)
    about = getattr(message, "response_metadata", None)
    begun = getattr(streamed.message, "response_metadata", None)
    output = getattr(response, "llm_output", None)
    if not reported and not is_dict(reported) and not streamed.has_reported:
        reported = usage_reported(about, output, begun)
    counts = streamed.usage(counts_of(reported))
    said = metadata.get("ls_model_name")
    requested = said if isinstance(said, str) else None
    answered = text_of(about, "model_name", "model") or text_of(begun, "model_name", "model")
    if not answered and output:
        answered = text_of(output, "model_name", "model")
    return Usage(
        model=answered or requested or "unknown",
        requested_model=requested if answered and answered != requested else None,
        provider=text_of(about, "model_provider")
        or (begun and text_of(begun, "model_provider"))
        or text_of(metadata, "ls_provider"),
        node=path[-1] if path else None,
        namespace=tuple(path[:-1]),
        input_tokens=counts["input_tokens"],
        output_tokens=counts["output_tokens"],
        cached_tokens=counts["cached_tokens"],
        cache_write_tokens=counts["cache_write_tokens"],
        reasoning_tokens=counts["reasoning_tokens"],
        time_to_first_token_s=first_s,
        reported=any(counts.values()) or is_dict(reported),
        details=details_of(message, about or begun, reported, response, streamed.request),
    )


def _count(value: Any) -> int:
    """Return a number of tokens; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def text_of(about: Any, *names: str) -> str | None:
    """Return the first of *names* that is text in *about*, or None."""
    if not is_dict(about):
        return None
    for name in names:
        value = about.get(name)
        if value and isinstance(value, str):
            return value
    return None


def _dict(value: Any) -> dict[str, Any]:
    return value if is_dict(value) else {}
