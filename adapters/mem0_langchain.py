"""Listening to the LangChain model that mem0 was given."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from .langgraph_models import message_of, text_of, usage_in

if TYPE_CHECKING:
    from .mem0_spend import Heard


class Listener(BaseCallbackHandler):
    """
    Hears what a model used while mem0 asks it, and nothing of what anybody else asks it.

    Args:
        heard: Where it is written down: None while mem0 asks nothing.
    """

    run_inline = True

    def __init__(self, heard: ContextVar[Heard | None]) -> None:
        self._heard = heard

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002 - LangChain's signature
        """Write down what was used, unless a graph's run has the call."""
        heard = self._heard.get()
        if heard is None:
            return
        heard.is_told = _is_recorded(run_id)
        message = message_of(response)
        reported = getattr(message, "usage_metadata", None)
        if reported:
            heard.usage = usage_in(reported)
        heard.model = text_of(getattr(message, "response_metadata", None), "model_name", "model")


def _is_recorded(run_id: UUID) -> bool:
    try:
        from .langgraph_callbacks import graph_callbacks  # noqa: PLC0415 - LangGraph may be absent
    except ImportError:
        return False
    return graph_callbacks().runs.recorded(run_id) is not None
