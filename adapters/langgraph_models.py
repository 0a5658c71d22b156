"""What a model call used, read from what LangChain tells of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from ..telemetry.thawed import draft_of
from ..telemetry.usage import Usage


class Spoken:
    """
    What a model said of itself while it answered, chunk by chunk.

    Providers report usage in pieces, to be summed, or again and again, as the total so far.
    LangChain sums in both cases. No provider asks for the same input twice within one answer, so
    input that is reported again, with nothing less than before, is a total.

    Attributes:
        first: When the first chunk came, monotonic seconds.
        message: The latest chunk that tells of its model.
        is_cumulative: Whether each report was the total so far.
    """

    __slots__ = ("__weakref__", "_last", "_sum", "first", "is_cumulative", "message")

    def __init__(self) -> None:
        self.first: float | None = None
        self.message: Any = None
        self.is_cumulative = False
        self._last: dict[str, int] = {}
        self._sum: dict[str, int] = {}

    def heard(self, message: Any) -> None:
        """Take a chunk."""
        if message.usage_metadata:
            self._used(counts_of(message.usage_metadata))
        if message.response_metadata:
            self.message = message

    def _used(self, counts: dict[str, int]) -> None:
        last, alone = self._last, self._last == self._sum
        grows = counts["input_tokens"] > 0 and all(counts[name] >= last[name] for name in last)
        self.is_cumulative = bool(last) and grows and (alone or self.is_cumulative)
        self._last = counts
        self._sum = {name: self._sum.get(name, 0) + count for name, count in counts.items()}

    def usage(self, reported: dict[str, int]) -> dict[str, int]:
        """Return what was used, given what LangChain made of the chunks."""
        if self.is_cumulative:
            return self._last
        if not self._sum:
            return reported
        # Where it made less of them, it has let a later detail replace an earlier one.
        return {name: max(count, self._sum.get(name, 0)) for name, count in reported.items()}


def counts_of(reported: Any) -> dict[str, int]:
    """Return the five numbers of a ``usage_metadata``; what makes no sense counts for nothing."""
    used = _dict(reported)
    if used.get("total_cost") == 0:
        used = {}  # LangChain's own cache answered, and says so like this
    into, out = _dict(used.get("input_token_details")), _dict(used.get("output_token_details"))
    return {
        "input_tokens": _count(used.get("input_tokens")),
        "output_tokens": _count(used.get("output_tokens")),
        "cached_tokens": _count(into.get("cache_read")),
        "cache_write_tokens": _count(into.get("cache_creation")),
        "reasoning_tokens": _count(out.get("reasoning")),
    }


_draft: Callable[[], Any] = draft_of(Usage)


def with_cost(usage: Usage, cost_usd: float | None) -> Usage:
    """Return *usage*, which has no cost, with its cost."""
    if cost_usd is None:
        return usage
    made = _draft()
    made.model = usage.model
    made.provider = usage.provider
    made.node = usage.node
    made.namespace = usage.namespace
    made.input_tokens = usage.input_tokens
    made.output_tokens = usage.output_tokens
    made.cached_tokens = usage.cached_tokens
    made.cache_write_tokens = usage.cache_write_tokens
    made.reasoning_tokens = usage.reasoning_tokens
    made.time_to_first_token_s = usage.time_to_first_token_s
    made.cost_usd = cost_usd
    made.reported = usage.reported
    made.__class__ = Usage
    priced: Usage = made
    return priced


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


def usage_of(
    message: Any,
    spoken: Spoken,
    *,
    metadata: Mapping[str, Any],
    path: Sequence[str],
    first_s: float | None,
) -> Usage:
    """
    Return what a call used.

    Args:
        message: The answer, whole or as far as it came. None: there is none.
        spoken: What was said of it on the way.
        metadata: Of the call, which names the model where the answer does not.
        path: Names of the nodes around the call, outermost first.
        first_s: Seconds to the first chunk.
    """
    reported = getattr(message, "usage_metadata", None)
    about = getattr(message, "response_metadata", None)
    begun = getattr(spoken.message, "response_metadata", None)
    counts = spoken.usage(counts_of(reported))
    made = _draft()
    made.model = (
        text_of(about, "model_name", "model")
        or text_of(begun, "model_name", "model")
        or text_of(metadata, "ls_model_name")
        or "unknown"
    )
    made.provider = (
        text_of(about, "model_provider")
        or text_of(begun, "model_provider")
        or text_of(metadata, "ls_provider")
    )
    made.node = path[-1] if path else None
    made.namespace = tuple(path[:-1])
    made.input_tokens = counts["input_tokens"]
    made.output_tokens = counts["output_tokens"]
    made.cached_tokens = counts["cached_tokens"]
    made.cache_write_tokens = counts["cache_write_tokens"]
    made.reasoning_tokens = counts["reasoning_tokens"]
    made.time_to_first_token_s = first_s
    made.cost_usd = None
    made.reported = any(counts.values()) or _is_dict(reported)
    made.__class__ = Usage
    used: Usage = made
    return used


def _count(value: Any) -> int:
    """Return a number of tokens; what is no such number counts for nothing."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def text_of(about: Any, *names: str) -> str | None:
    """Return the first of *names* that is text in *about*, or None."""
    if not _is_dict(about):
        return None
    for name in names:
        value = about.get(name)
        if value and isinstance(value, str):
            return value
    return None


def _is_dict(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _dict(value: Any) -> dict[str, Any]:
    return value if _is_dict(value) else {}
