"""
What viewers that know OpenInference show of a span: its kind, what went in and came out, documents.

The GenAI conventions have no word for the kinds of spans, by which Phoenix and others draw a trace.
These attributes stand beside theirs, by ``Arize-ai/openinference``, `spec/semantic_conventions.md`.
"""

from __future__ import annotations

from typing import Any, Final

from ..event.event import Event, OperationClass
from ..event.text import json_text
from ..event.usage import Usage
from . import semconv

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
    if op_class == OperationClass.RECALL.value:
        return "RETRIEVER"
    return _KINDS.get(operation, "CHAIN")


def what_went_through(event: Event, *, content: bool) -> dict[str, Any]:
    """Return what went into an operation and came out of it; without *content*, how much."""
    found: dict[str, Any] = {}
    if event.content is not None and content:
        found[semconv.CONTENT] = json_text(event.content.value)
        found[semconv.INPUT_MIME_TYPE] = _JSON
    elif event.size_bytes is not None:
        found[semconv.CONTENT] = f"{event.size_bytes} bytes"
        found[semconv.INPUT_MIME_TYPE] = _TEXT
    if event.answer is not None and content:
        found[semconv.OUTPUT_VALUE] = json_text(event.answer.value)
        found[semconv.OUTPUT_MIME_TYPE] = _JSON
    elif event.usage is not None and event.usage.reported:
        found |= _tokens(event.usage)
    elif event.hits is not None and not event.is_notice:
        found[semconv.OUTPUT_VALUE] = f"{event.hits} found"
        found[semconv.OUTPUT_MIME_TYPE] = _TEXT
    return found


def _tokens(usage: Usage) -> dict[str, Any]:
    """Return how much went into a model and came out of it, which is all that is known of that."""
    return {
        semconv.CONTENT: f"{usage.input_tokens} tokens",
        semconv.INPUT_MIME_TYPE: _TEXT,
        semconv.OUTPUT_VALUE: f"{usage.output_tokens} tokens",
        semconv.OUTPUT_MIME_TYPE: _TEXT,
    }


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
