"""The calls of LlamaIndex's models that answered, as its instrumentation tells them: each once."""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from weakref import ref

from ...memory.api import ModelAccounting, Usage
from ...memory.context import current

_tokens: Any = import_module("llama_index.core.callbacks.token_counting")
_instrumentation: Any = import_module("llama_index.core.instrumentation")
_latest: ContextVar[str | None] = ContextVar("mnemoscope_llama_index_call", default=None)
_open: dict[str, tuple[float, str]] = {}
_counting: list[ref[ModelAccounting]] = []


def handle(event: Any, **_: Any) -> None:
    """Note the beginning or the end of a call. A completion that chat is made of is the same."""
    name, span, by = type(event).__name__, event.span_id, _counting[-1]()
    if by is None or by.is_closed:
        return
    if name in {"LLMChatStartEvent", "LLMCompletionStartEvent"}:
        if _latest.get() not in _open:
            _latest.set(span)
            _open[span] = by.clock(), event.model_dict.get("model_name") or "unknown"
    elif name in {"ExceptionEvent", "SpanDropEvent"}:
        _open.pop(span, None)
    elif name in {"LLMChatEndEvent", "LLMCompletionEndEvent"} and span in _open:
        given, answered, (began, model) = 0, 0, _open.pop(span)
        with suppress(AttributeError, TypeError, ValueError):  # a provider's of another form
            given, answered = _tokens.get_tokens_from_response(event.response)
        known = given + answered > 0
        usage = Usage(model=model, input_tokens=given, output_tokens=answered, reported=known)
        by.tell(current(), usage, "llama_index.model", took_s=by.clock() - began)


def count_model_calls(accounting: ModelAccounting) -> None:
    """Count for this scope from now on: nothing says for which of several a call is."""
    if not _counting:
        _instrumentation.get_dispatcher().event_handlers.append(SimpleNamespace(handle=handle))
    _counting[:] = [ref(accounting)]
