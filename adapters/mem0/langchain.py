"""LangChain callback that reads the usage of a model that mem0 calls."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from ..langgraph.runs.details import answered, requested
from ..langgraph.runs.model_calls import is_from_cache, message_of, text_of, usage_in
from ..langgraph.runs.provider_usage import usage_reported
from .provider_answer import ProviderAnswer


class UsageCallback(BaseCallbackHandler):
    """
    Callback handler that reads the usage of calls made by mem0, and of no other caller.

    Args:
        answer: The answer to fill in. None while mem0 makes no call.
    """

    # On the thread of the call: the context that says whose it is has no meaning on another.
    run_inline = True

    def __init__(self, answer: ContextVar[ProviderAnswer | None]) -> None:
        self._answer = answer

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:  # noqa: ARG002 - as below
        """Note the request."""
        answer = self._answer.get()
        if answer is not None:
            answer.details |= requested(serialized, kwargs.get("invocation_params"))

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002 - LangChain's signature
        """Note the usage, unless a graph's run records the call."""
        answer = self._answer.get()
        if answer is None:
            return
        answer.is_recorded = _is_recorded(run_id)
        message = message_of(response)
        about = getattr(message, "response_metadata", None)
        output = getattr(response, "llm_output", None)
        reported = getattr(message, "usage_metadata", None) or usage_reported(about, output)
        if reported:
            is_free = is_from_cache(response, message, run_id)
            answer.usage = usage_in({} if is_free else reported)
        answer.model = text_of(about, "model_name", "model")
        answer.details |= answered(message, about, reported, response)


def _is_recorded(run_id: UUID) -> bool:
    try:
        from ..langgraph.runs.callbacks import graph_callbacks  # noqa: PLC0415 - LangGraph may be absent
    except ImportError:
        return False
    return graph_callbacks().runs.recorded(run_id) is not None
