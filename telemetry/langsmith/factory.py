"""The factory of the LangSmith sink."""

from __future__ import annotations

import os

from ..delivery.registry import SinkContext
from .sink import LangSmithSink


def build(context: SinkContext) -> LangSmithSink | None:
    """Build the sink if it is named or LangSmith's tracing is on."""
    if context.is_named or _is_tracing():
        return LangSmithSink(content=context.content)
    return None


def _is_tracing() -> bool:
    variables = ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2")
    return any(os.environ.get(name, "").lower() == "true" for name in variables)
