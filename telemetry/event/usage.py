"""Tokens and cost of one model call."""

from __future__ import annotations

from typing import Final

import msgspec

TOKENS: Final = (
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)
"""The fields of `Usage` that count tokens: what is added wherever usage is."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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

    def with_tokens_of(self, before: Usage) -> Usage:
        """Return this usage with the tokens of *before* added: a call that is asked in parts."""
        return msgspec.structs.replace(
            self, **{name: getattr(before, name) + getattr(self, name) for name in TOKENS}
        )
