"""
History providers of Microsoft's Agent Framework behind a guard. The framework is not imported.

Its protocol is two methods, which the base class calls before and after each run. Afterwards the
run's response tells what its model calls used together, which is counted here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, Protocol, runtime_checkable
from weakref import WeakKeyDictionary, WeakSet

from ...memory import api
from ...memory.context import current
from ..toolkit.named_customer import named_customer
from ..toolkit.proxy import GuardedMethods, guarded_class
from .messages import redact_messages
from .subject_data import HistoryData

_MODEL: Final = "agent_framework.model"
_began = WeakKeyDictionary[Any, float]()
"""When each run read its history, whichever of its providers did."""
_told = WeakKeyDictionary[api.ModelAccounting, WeakSet[Any]]()
"""Runs that each scope has counted: an agent may have several providers."""

NOT_GUARDED = {
    "before_run": "calls get_messages of the guarded provider",
    "after_run": "calls save_messages of the guarded provider",
    "close": "closes the provider's connections",
    "aclose": "closes the provider's connections",
}


@runtime_checkable
class History(Protocol):
    """The framework's history provider, as far as it takes to tell it from other objects."""

    get_messages: Callable[..., Any]
    save_messages: Callable[..., Any]
    before_run: Callable[..., Any]
    after_run: Callable[..., Any]


def _redact(arguments: api.Arguments, redaction: api.Redaction) -> api.Arguments:
    redacted: api.Arguments = {}
    for name, value in arguments.items():
        if name == "messages":
            redacted[name] = redact_messages(value, redaction)
        else:  # the state is the session's own, which the provider keeps its messages in
            keeps = name in {"session_id", "state"}
            redacted[name] = value if keeps else redaction.value(value)
    return redacted


def _said(arguments: api.Arguments) -> Any:
    return [each.to_dict() for each in arguments["messages"]]


def bind(
    client: Any, services: api.AdapterServices, /, *, customer: Any = None
) -> api.StoreBinding:
    """
    Return the binding of any history provider.

    Args:
        client: The provider.
        services: What the scope offers.
        customer: Function that returns whose a session is from its id. None: the context's
            customer counts, and nothing is exported or erased.
    """

    def scope(arguments: api.Arguments) -> api.Scope:
        session_id: Any = arguments.get("session_id")
        return api.Scope(customer=named_customer(customer and customer(session_id)), run=session_id)

    common: api.Arguments = {"redact": _redact, "scope": scope, "needs_owner": bool(customer)}
    rows = api.method_table(
        api.recall(
            "get_messages",
            neutral=lambda _: [],
            summary=lambda found, _: api.Summary(hits=len(found)),
            **common,
        ),
        api.remember("save_messages", neutral=lambda _: None, content=_said, **common),
        api.forget("clear", deletes=api.Deletes.SCOPE, **common),
    )

    by = services.accounting

    def class_of(base: Any) -> Any:
        table = {name: each for name, each in rows.items() if hasattr(base, name)}
        methods = GuardedMethods(table=table, client_types=(base,), not_guarded=[*NOT_GUARDED])
        kind: Any = guarded_class(base, methods)

        # The base's, on the guarded provider: they call the guarded methods.
        @wraps(base.before_run)
        async def before_run(self: Any, *, context: Any, **given: Any) -> None:
            _began.setdefault(context, by.clock())
            await base.before_run(self, context=context, **given)

        @wraps(base.after_run)
        async def after_run(self: Any, *, agent: Any, context: Any, **given: Any) -> None:
            await base.after_run(self, agent=agent, context=context, **given)
            try:
                took_s = (now := by.clock()) - _began.get(context, now)
                told, usage = _told.setdefault(by, WeakSet()), _usage(agent, context.response)
                if usage is not None and context not in told:
                    told.add(context)
                    by.tell(current(), usage, _MODEL, took_s=took_s)
            except Exception as exc:  # noqa: BLE001 - observing fails open
                by.faults.note(_MODEL, exc)

        kind.before_run, kind.after_run = before_run, after_run
        return kind

    data = HistoryData(client, customer)
    return api.StoreBinding(methods=rows, client_class=class_of, subject_data=data)


def _usage(agent: Any, response: Any) -> api.Usage | None:
    used: Any = getattr(response, "usage_details", None)
    model: Any = getattr(getattr(response, "raw_representation", None), "model", None)
    return used and api.Usage(
        model=model if isinstance(model, str) else "unknown",
        node=getattr(agent, "name", None),
        input_tokens=used.get("input_token_count") or 0,
        output_tokens=used.get("output_token_count") or 0,
        cached_tokens=used.get("cache_read_input_token_count") or 0,
        cache_write_tokens=used.get("cache_creation_input_token_count") or 0,
        reasoning_tokens=used.get("reasoning_output_token_count") or 0,
    )


ADAPTER = api.StoreAdapter(
    store="agent_framework", client_types=(History,), bind=bind, not_guarded=NOT_GUARDED
)
