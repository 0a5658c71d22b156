"""Answer of a model's provider to a call by mem0."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from ...telemetry.event.usage import Usage


@dataclass(slots=True)
class ProviderAnswer:
    """
    The provider's report on the call that is being made.

    Attributes:
        model: The model's name, as the provider gives it.
        usage: Tokens. None: not reported.
        details: What else is known of the call, by the fields of `CallDetails`.
        is_recorded: The call is part of an observed graph run, and recorded there.
    """

    model: str | None = None
    usage: Usage | None = None
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    is_recorded: bool = False


CURRENT: ContextVar[ProviderAnswer | None] = ContextVar("mnemoscope_mem0_answer", default=None)
"""None while mem0 calls no model."""
