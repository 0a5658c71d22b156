"""The calls of CrewAI's models that answered, as its event bus tells them: each once."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from weakref import ref

from ...memory.api import ModelAccounting, Usage
from ...memory.context import current

_events: Any = import_module("crewai.events")
_metrics: Any = import_module("crewai.types.usage_metrics").UsageMetrics
_counting: list[ref[ModelAccounting]] = []
_began: dict[str, Any] = {}


def _begin(_source: Any, event: Any) -> None:
    _began[event.call_id] = event.timestamp


def _end(_source: Any, event: Any) -> None:
    by, began = _counting[-1](), _began.pop(event.call_id, event.timestamp)
    used: Any = _metrics.from_provider_dict(getattr(event, "usage", None))
    # Without: it failed, or the bus tells of it again, once its tool was called.
    if by is None or by.is_closed or used is None:
        return
    usage = Usage(
        model=event.model or "unknown",
        input_tokens=used.prompt_tokens,
        output_tokens=used.completion_tokens,
        cached_tokens=used.cached_prompt_tokens,
        cache_write_tokens=used.cache_creation_tokens,
        reasoning_tokens=used.reasoning_tokens,
    )
    by.tell(current(), usage, "crewai.model", took_s=(event.timestamp - began).total_seconds())


def count_model_calls(accounting: ModelAccounting) -> None:
    """Count for this scope from now on: nothing says for which of several a call is."""
    if not _counting:
        listen = _events.crewai_event_bus.register_handler
        listen(_events.LLMCallStartedEvent, _begin)
        listen(_events.LLMCallCompletedEvent, _end)
        listen(_events.LLMCallFailedEvent, _end)
    _counting[:] = [ref(accounting)]
