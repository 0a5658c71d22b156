"""A chat model of LangChain that gives answers one after another, each of the same tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

INPUT_TOKENS = 100
OUTPUT_TOKENS = 7


class Script(list[Any]):
    """Answers, and the messages that each was given to: shared by all copies of a model."""

    def __init__(self, answers: Sequence[Any]) -> None:
        super().__init__(answers)
        self.asked: list[list[Any]] = []

    def __deepcopy__(self, _memo: Any) -> Script:
        return self


class ScriptedModel(BaseChatModel):
    """
    A model that reads its answers off a script.

    Attributes:
        script: A text, or the name of a tool and its arguments, for each call.
    """

    script: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, _tools: Any, **_options: Any) -> ScriptedModel:
        """Return this model: which tools there are does not matter to it."""
        return self

    def _generate(self, messages: Any, *_args: Any, **_kwargs: Any) -> ChatResult:
        self.script.asked.append(messages)
        step = self.script[len(self.script.asked) - 1]
        calls, text = [], step
        if not isinstance(step, str):
            name, given = step
            calls = [{"name": name, "args": given, "id": f"call-{len(self.script.asked)}"}]
            text = ""
        tokens = {
            "input_tokens": INPUT_TOKENS,
            "output_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        }
        answer = AIMessage(text, tool_calls=calls, usage_metadata=tokens)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def scripted(*answers: Any) -> ScriptedModel:
    """Return a model that gives *answers*."""
    return ScriptedModel(script=Script(answers))
