"""
What viewers that know OpenInference show of a span: its kind, what went in and came out, documents.

The GenAI conventions have no word for the kinds of spans, by which Phoenix and others draw a trace.
These attributes stand beside theirs, by ``Arize-ai/openinference``, `spec/semantic_conventions.md`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ...event.event import Event, OperationClass
from ...event.tool_run import ToolRun
from ...event.usage import Usage
from ...text import json_text
from . import semconv
from .messages import as_genai, as_openinference, messages_in

MOST_DOCUMENTS: Final = 20
"""Documents of a recall that are told one by one."""

_JSON: Final = "application/json"
_TEXT: Final = "text/plain"
_KINDS: Final = {
    "chat": "LLM",
    "embeddings": "EMBEDDING",
    "rerank": "RERANKER",
    "invoke_agent": "AGENT",
    "execute_tool": "TOOL",
}
_VALUES: Final = semconv.CONTENT, semconv.OUTPUT_VALUE
_MIME_TYPES: Final = semconv.INPUT_MIME_TYPE, semconv.OUTPUT_MIME_TYPE


class _Side(NamedTuple):
    """The attributes of what went into a model or tool, or of what came out."""

    messages: str
    prefix: str
    tool: str


_SIDES: Final = (
    _Side(semconv.INPUT_MESSAGES, "llm.input_messages", semconv.TOOL_CALL_ARGUMENTS),
    _Side(semconv.OUTPUT_MESSAGES, "llm.output_messages", semconv.TOOL_CALL_RESULT),
)
DOCUMENT_IDS: Final = tuple(
    f"retrieval.documents.{place}.document.id" for place in range(MOST_DOCUMENTS)
)
_DOCUMENT_SCORES: Final = tuple(
    f"retrieval.documents.{place}.document.score" for place in range(MOST_DOCUMENTS)
)


def kind_of(operation: str, op_class: str) -> str:
    """
    Return the kind of a span: what is neither a model's, an agent's nor a tool's is a chain.

    So is a search within a recall: what was retrieved is told once, by the recall.
    """
    # By the class: adapters have several operations that recall.
    if op_class == OperationClass.RECALL.value:
        return "RETRIEVER"
    return _KINDS.get(operation, "CHAIN")


def what_went_through(event: Event, *, content: bool) -> dict[str, Any]:
    """Return what went into an operation and came out of it; without *content*, how much."""
    found: dict[str, Any] = {}
    for name, mime, how_much in zip(_VALUES, _MIME_TYPES, _how_much(event), strict=True):
        if how_much is not None:
            found[name], found[mime] = how_much, _TEXT
    if content:
        shown = event.content or event.given, event.answer
        for name, mime, each in zip(_VALUES, _MIME_TYPES, shown, strict=True):
            if each is not None:
                found[name], found[mime] = json_text(each.value), _JSON
        found |= _by_the_conventions(event)
    return found


def _how_much(event: Event) -> tuple[str | None, str | None]:
    """Return how much went in and came out."""
    given = answer = None
    for part in event.parts:
        if isinstance(part, Usage) and part.reported:
            return f"{part.input_tokens} tokens", f"{part.output_tokens} tokens"
        if isinstance(part, ToolRun):
            given, answer = _characters(part.given_chars), _characters(part.answer_chars)
    if event.size_bytes is not None:
        given = f"{event.size_bytes} bytes"
    if event.hits is not None and not event.is_notice:
        return given, f"{event.hits} found"
    return given, answer


def _characters(number: int | None) -> str | None:
    return None if number is None else f"{number} characters"


def _by_the_conventions(event: Event) -> dict[str, Any]:
    """Return what went through a model or a tool by the GenAI conventions, and as conversations."""
    found: dict[str, Any] = {}
    for each, side in zip((event.given, event.answer), _SIDES, strict=True):
        if each is None:
            continue
        if event.operation == "execute_tool":
            found[side.tool] = json_text(each.value)
        elif event.usage is not None and (messages := messages_in(each.value)):
            found[side.messages] = as_genai(messages)
            found |= as_openinference(side.prefix, messages)
    return found


def documents(event: Event) -> dict[str, Any]:
    """Return the documents of a recall: ids and scores, the best first."""
    if event.op_class is not OperationClass.RECALL:
        return {}
    found: dict[str, Any] = dict(zip(DOCUMENT_IDS, event.memory_ids, strict=False))
    return found | dict(zip(_DOCUMENT_SCORES, map(float, event.scores), strict=False))


def model(operation: str, name: str, provider: str | None) -> dict[str, Any]:
    """Return which model was called."""
    if operation == "embeddings":
        return {semconv.EMBEDDING_MODEL: name}
    return {semconv.LLM_MODEL: name, semconv.LLM_PROVIDER: provider}


def consumed(usage: Usage) -> dict[str, Any]:
    """Return the tokens of a model call."""
    if not usage.reported:
        return {}
    return {
        semconv.LLM_TOKENS_PROMPT: usage.input_tokens,
        semconv.LLM_TOKENS_COMPLETION: usage.output_tokens,
        semconv.LLM_TOKENS_TOTAL: usage.input_tokens + usage.output_tokens,
        semconv.LLM_TOKENS_CACHE_READ: usage.cached_tokens or None,
        semconv.LLM_TOKENS_CACHE_WRITE: usage.cache_write_tokens or None,
        semconv.LLM_TOKENS_REASONING: usage.reasoning_tokens or None,
    }
