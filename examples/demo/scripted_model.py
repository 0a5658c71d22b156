"""
A chat model that follows a script, and is named so that nobody takes it for a language model.

It streams and reports usage as a real one does. Tokens are words; the system prompt counts as
cached, and each line of the answer as one reasoning token. The answer follows from the prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LangSmithParams
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessageChunk, BaseMessage, SystemMessage
from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from .surge import Tokens

PROVIDER = "scripted"
MODEL = "scripted-concierge"
OUTLINES = "points to make"
"""Words that mark a prompt for an outline."""
SAID = "They said: "
"""What a point begins with that is a memory."""
NOTED = "Thank you, that is noted."
ALL_OF_IT = "Of course. This is what I have noted. "

_NEW_MESSAGES = re.compile(r"^## New Messages\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
"""The part of mem0's prompt that holds what was said now."""

_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!Dr\.)\s+")
_FEWEST_WORDS = 3
_OF_THEM = re.compile(r"\b(I|me|my|we|us|our)\b|<\w+>", re.IGNORECASE)
_SMALL_TALK = re.compile(
    r"^(hello|good morning|lovely|nothing)\b|\b(angel|as ever|ask twice|thank you|wonderful)\b"
    r"|\bname is\b|<PERSON\w*> here\b|\b(I'm|it is) <PERSON",
    re.IGNORECASE,
)
_ASKED_US = re.compile(r"^(?:and |please )*(?=(?:call|charge|send|use|write)\b)", re.IGNORECASE)
_TO_YOU = {
    "i am": "you are",
    "i'm": "you are",
    "i": "you",
    "me": "you",
    "my": "your",
    "we": "you",
    "us": "you",
    "our": "your",
}
_OURS = re.compile(rf"\b(?:{'|'.join(_TO_YOU)})\b", re.IGNORECASE)


def _as_counted(counted: Tokens) -> Tokens:
    return counted


class ScriptedModel(BaseChatModel):
    """
    Answers with the lines of its prompt that begin with a dash.

    For an outline it takes what was said before and the first document; where nothing is asked, it
    is a thank-you. In its answer what a customer said of themselves is said to them. Asked by mem0
    for facts, it takes what a message states of them: neither questions nor small talk.

    Attributes:
        tokens: Returns what is reported in place of the tokens that were counted: the demo's surge.
    """

    tokens: Callable[[Tokens], Tokens] = _as_counted

    @property
    def _llm_type(self) -> str:
        return PROVIDER

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop, **kwargs)
        params |= {"ls_provider": PROVIDER, "ls_model_name": MODEL}
        return params

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        del stop, kwargs
        answer = _answer(messages)
        for chunk in chain(_words(answer), [_last(self.tokens(_counted(messages, answer)))]):
            generation = ChatGenerationChunk(message=chunk)
            if run_manager:
                run_manager.on_llm_new_token(str(chunk.content), chunk=generation)
            yield generation

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return generate_from_stream(self._stream(messages, stop, run_manager, **kwargs))


def _answer(messages: Sequence[BaseMessage]) -> str:
    if found := _NEW_MESSAGES.search(messages[-1].text):
        return json.dumps({"memory": [{"text": each} for each in _stated(found[1])]})
    asked = messages[-1].text.partition("\n")[0]
    points = [line[2:] for line in messages[-1].text.splitlines() if line.startswith("- ")]
    said = [point.removeprefix(SAID) for point in points if point.startswith(SAID)]
    others = [point for point in points if not point.startswith(SAID)]
    if OUTLINES in messages[0].text:
        made = [*(SAID + each for each in said), *others[:1]] if "?" in asked else []
        return "\n".join(f"- {point}" for point in made or [NOTED])
    if not said:
        return " ".join(others)
    told = " ".join(map(_to_you, said))
    if not others:
        return ALL_OF_IT + told
    return f"I remember. {told} {' '.join(others)}"


def _to_you(said: str) -> str:
    """Return what somebody said of themselves as it is said to them."""
    turned = _OURS.sub(lambda found: _TO_YOU[found[0].lower()], said)
    turned = _ASKED_US.sub("you asked us to ", turned)
    return turned[:1].upper() + turned[1:]


def _stated(message: str) -> Iterator[str]:
    for sentence in _SENTENCE_END.split(message.strip().removeprefix("user: ")):
        if sentence.endswith("?") or len(sentence.split()) < _FEWEST_WORDS:
            continue
        if _OF_THEM.search(sentence) and not _SMALL_TALK.search(sentence):
            yield sentence


def _words(answer: str) -> Iterator[AIMessageChunk]:
    about = {"model_provider": PROVIDER, "model_name": MODEL}
    for place, word in enumerate(answer.split(" ")):
        yield AIMessageChunk(
            content=word if place == 0 else f" {word}",
            response_metadata=about if place == 0 else {},
        )


def _last(tokens: Tokens) -> AIMessageChunk:
    return AIMessageChunk(
        content="",
        usage_metadata=_usage(tokens),
        response_metadata={"finish_reason": "stop"},
        chunk_position="last",
    )


def _counted(messages: Sequence[BaseMessage], answer: str) -> Tokens:
    system = [message for message in messages if isinstance(message, SystemMessage)]
    return Tokens(
        prompt=sum(_count(message.text) for message in messages),
        cached=sum(_count(message.text) for message in system),
        said=_count(answer),
        reasoned=answer.count("\n") + 1,
    )


def _usage(tokens: Tokens) -> UsageMetadata:
    output = tokens.said + tokens.reasoned
    return UsageMetadata(
        input_tokens=tokens.prompt,
        output_tokens=output,
        total_tokens=tokens.prompt + output,
        input_token_details=InputTokenDetails(cache_read=tokens.cached),
        output_token_details=OutputTokenDetails(reasoning=tokens.reasoned),
    )


def _count(text: str) -> int:
    return len(text.split())
