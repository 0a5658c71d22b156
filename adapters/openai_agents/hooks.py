"""Model calls of the OpenAI Agents SDK, by its run hooks: an event each, with the tokens."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from ...memory.api import AdapterServices, StoreAdapter, StoreBinding, Usage
from ...memory.context import current
from ..toolkit.proxy import INNER, GuardedMethods, guarded_class


@runtime_checkable
class RunHooks(Protocol):
    """The SDK's run hooks, as far as it takes to tell them from other objects."""

    on_llm_start: Callable[..., Any]
    on_agent_start: Callable[..., Any]


def _usage(agent: Any, used: Any, model: str | None) -> Usage:
    named, details = model or getattr(agent.model, "model", agent.model), used.input_tokens_details
    return Usage(
        model=named if isinstance(named, str) else "unknown",
        node=agent.name,
        reported=bool(used.requests and used.total_tokens),
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=details.cached_tokens or 0,
        cache_write_tokens=getattr(details, "cache_write_tokens", 0) or 0,
        reasoning_tokens=used.output_tokens_details.reasoning_tokens or 0,
    )


def bind(_hooks: Any, services: AdapterServices, /, *, model: str | None = None) -> StoreBinding:
    """Return the binding of run hooks. *model*: the runs' model, where agents do not name it."""
    by, began = services.accounting, WeakKeyDictionary[Any, float]()

    async def on_llm_start(self: Any, context: Any, *args: Any) -> None:
        began[context] = by.clock()
        await self.__dict__[INNER].on_llm_start(context, *args)

    async def on_llm_end(self: Any, context: Any, agent: Any, response: Any) -> None:
        try:
            usage, took_s = _usage(agent, response.usage, model), by.clock() - began.pop(context)
            by.tell(current(), usage, ADAPTER.store, took_s=took_s)
        except Exception as exc:  # noqa: BLE001 - observing fails open
            by.faults.note(ADAPTER.store, exc)
        await self.__dict__[INNER].on_llm_end(context, agent, response)

    def class_of(base: Any) -> Any:
        methods = GuardedMethods(table={}, client_types=(base,), not_guarded=dir(base))
        kind: Any = guarded_class(base, methods)
        kind.on_llm_start = wraps(base.on_llm_start)(on_llm_start)
        kind.on_llm_end = wraps(base.on_llm_end)(on_llm_end)
        return kind

    return StoreBinding(methods={}, client_class=class_of, shared=False)


ADAPTER = StoreAdapter(store="openai_agents.model", client_types=(RunHooks,), bind=bind)
