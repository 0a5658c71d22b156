"""The calls of LlamaIndex's models, as its instrumentation tells them: each once, with tokens."""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from weakref import ref

from ...memory import api
from ..toolkit.model_calls import End, begin_model_call

_tokens: Any = import_module("llama_index.core.callbacks.token_counting")
_instrumentation: Any = import_module("llama_index.core.instrumentation")
_latest: ContextVar[str | None] = ContextVar("mnemoscope_llama_index_call", default=None)
_UNKNOWN = api.Usage(model="", reported=False)


_open: dict[str, End] = {}
_counting: list[ref[api.ModelAccounting]] = []


def handle(event: Any, **_: Any) -> None:
    """Note the beginning or the end of a call. A completion that chat is made of is the same."""
    name, span = type(event).__name__, event.span_id
    if name in {"LLMChatStartEvent", "LLMCompletionStartEvent"}:
        by = _counting[-1]()
        if by is not None and _latest.get() not in _open:
            _latest.set(span)
            model = event.model_dict.get("model_name")
            _open[span] = begin_model_call(by, "llama_index.model", model)
    elif name in {"ExceptionEvent", "SpanDropEvent"} and span in _open:
        _open.pop(span)(_UNKNOWN, "Exception")  # one of the two has its text alone
    elif name in {"LLMChatEndEvent", "LLMCompletionEndEvent"} and span in _open:
        given = answered = 0
        with suppress(AttributeError, TypeError, ValueError):  # a provider's of another form
            given, answered = _tokens.get_tokens_from_response(event.response)
        used = {"input_tokens": given, "output_tokens": answered, "reported": given + answered > 0}
        _open.pop(span)(api.Usage(model="", **used), None)


def count_model_calls(accounting: api.ModelAccounting) -> None:
    """Count for this scope from now on: nothing says for which of several a call is."""
    if not _counting:
        _instrumentation.get_dispatcher().event_handlers.append(SimpleNamespace(handle=handle))
    _counting[:] = [ref(accounting)]
