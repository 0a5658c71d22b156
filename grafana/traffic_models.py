"""Variants of the demo's scripted model that lack a price or do not report usage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import LangSmithParams
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk

from mnemoscope.demo.scripted_model import ScriptedModel

NEWCOMER = "scripted-newcomer"
"""A model name without a price."""


class _Changed(ScriptedModel):
    """The scripted model with each chunk changed before callbacks receive it."""

    def _change(self, message: AIMessageChunk) -> None:
        raise NotImplementedError

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in super()._stream(messages, stop, None, **kwargs):
            if isinstance(chunk.message, AIMessageChunk):
                self._change(chunk.message)
            if run_manager:
                run_manager.on_llm_new_token(str(chunk.message.content), chunk=chunk)
            yield chunk


class Newcomer(_Changed):
    """A model without a price that writes its prompt to a cache."""

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop, **kwargs)
        params["ls_model_name"] = NEWCOMER
        return params

    def _change(self, message: AIMessageChunk) -> None:
        if "model_name" in message.response_metadata:
            message.response_metadata = message.response_metadata | {"model_name": NEWCOMER}
        if message.usage_metadata:
            details = message.usage_metadata.get("input_token_details", {})
            details["cache_creation"] = details.pop("cache_read", 0)


class Silent(_Changed):
    """A model whose provider reports no usage."""

    def _change(self, message: AIMessageChunk) -> None:
        message.usage_metadata = None
