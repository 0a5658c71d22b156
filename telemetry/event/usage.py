"""Tokens and cost of one model call, and what else is known of it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .part import EventPart

TOKENS: Final = (
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)
"""The fields of `Usage` that count tokens: what is added wherever usage is."""


class CallDetails(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    The request and the answer of one model call, in the terms of the OTel GenAI conventions.

    Numbers, ids and words of the provider's, and nothing of the content. Only in traces, and not
    sealed. None, or empty: not known.

    Attributes:
        finish_reasons: Why the model stopped, for each answer, in the provider's words.
        server: Host and port that the client asks.
        max_tokens: The most tokens that the answer may have.
        temperature: Of sampling, as the next two.
        top_p: The mass of the likeliest tokens that are sampled from.
        top_k: The number of the likeliest tokens that are sampled from.
        frequency_penalty: Of tokens by how often they were said.
        seed: Of sampling.
        choice_count: Answers that are wanted, where that is not one.
        dimension_count: Numbers that an embedding is to have.
        audio_input_tokens: Of the input tokens, those of sound.
        image_input_tokens: Of the input tokens, those of pictures.
        audio_output_tokens: Of the output tokens, those of sound.
    """

    response_id: str | None = None
    finish_reasons: tuple[str, ...] = ()
    server: tuple[str, int] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    choice_count: int | None = None
    dimension_count: int | None = None
    audio_input_tokens: int | None = None
    image_input_tokens: int | None = None
    audio_output_tokens: int | None = None


class Usage(EventPart, tag="usage", frozen=True, kw_only=True, gc=False):
    """
    The consumption of one model call, in the terms of the OTel GenAI conventions.

    Attributes:
        model: The name of the model that answered. A capped label.
        provider: Who served it, or None where the stream does not say.
        node: LangGraph node the call was made in. A capped label.
        namespace: The subgraphs around that node, outermost first, without task ids.
        input_tokens: All input, cached included.
        output_tokens: All output, reasoning included.
        cached_tokens: Input read from the provider's cache.
        cache_write_tokens: Input written to the provider's cache.
        reasoning_tokens: Output the model kept to itself.
        time_to_first_token_s: Seconds to the first chunk, or None where no clock saw it.
        cost_usd: By the price table, or None for a model it does not know. Never zero instead.
        reported: Whether the provider said what was used. If not, the tokens are unknown, not 0.
        requested_model: The name it was asked for by, or None where that is the same or unknown.
        details: What else is known of the call, if anything.
    """

    model: str
    provider: str | None = None
    node: str | None = None
    namespace: tuple[str, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    time_to_first_token_s: float | None = None
    cost_usd: float | None = None
    reported: bool = True
    requested_model: str | None = None
    details: CallDetails | None = None

    def fields(self) -> dict[str, Any]:
        """Return the fields of log records. Spans and LangSmith's runs have conventions."""
        return {
            "model": self.model,
            "provider": self.provider,
            "node": self.node,
            "namespace": "/".join(self.namespace) or None,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "time_to_first_token_s": self.time_to_first_token_s,
            "cost_usd": self.cost_usd,
        }

    def attributes(self) -> dict[str, Any]:
        """Return none: `telemetry.otlp.conventions` has them."""
        return {}

    def with_tokens_of(self, before: Usage) -> Usage:
        """Return this usage with the tokens of *before* added: a call that is asked in parts."""
        return msgspec.structs.replace(
            self, **{name: getattr(before, name) + getattr(self, name) for name in TOKENS}
        )
