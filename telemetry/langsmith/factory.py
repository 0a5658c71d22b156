"""The factory of the LangSmith sink."""

from __future__ import annotations

import os
from typing import Final

from ..delivery.registry import SinkContext
from .sink import LangSmithSink

TRACING: Final = tuple(
    f"{vendor}_{name}"
    for name in ("TRACING_V2", "TRACING")
    for vendor in ("LANGSMITH", "LANGCHAIN")
)
"""The variables by which LangSmith's tracing is switched on; `langsmith` reads all four."""


def build(context: SinkContext) -> LangSmithSink | None:
    """Build the sink if it is named or LangSmith's tracing is on."""
    if context.is_named or is_tracing():
        return LangSmithSink(content=context.content)
    return None


def is_tracing() -> bool:
    """Return whether the environment switches LangSmith's tracing on."""
    return any(os.environ.get(name, "").strip().lower() == "true" for name in TRACING)
