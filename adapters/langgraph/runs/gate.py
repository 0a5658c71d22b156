"""
The gate in front of model calls: none is made for a budget that is spent and says stop.

LangChain tells callbacks of a model call before it makes it, and lets the error of a handler with
``raise_error`` through: the call is not made, and the node that wanted it gets the error. A call
that is under way is never touched.
"""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from functools import cache
from typing import Any, Final, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

from ....memory.budgets.budgets import Budgets
from ....memory.context import Scope
from ....memory.errors import BudgetExceededError
from ....memory.guard.call import outer_call
from ....telemetry.process.faults import Faults
from .callbacks import graph_callbacks
from .meter import Meter

_MODEL_NAMES: Final = ("ls_model_name", "model", "model_name")


class Gate:
    """Budgets that are asked before a model call: those of the scopes that live."""

    def __init__(self) -> None:
        self._budgets: weakref.WeakKeyDictionary[Budgets, Faults] = weakref.WeakKeyDictionary()

    def __bool__(self) -> bool:
        """Return whether there are budgets to ask."""
        return bool(self._budgets)

    def watch(self, budgets: Budgets, faults: Faults) -> None:
        """Ask *budgets* from now on, as long as they live; errors of ours are noted in *faults*."""
        self._budgets[budgets] = faults

    def clear(self) -> None:
        """Drop all budgets."""
        self._budgets.clear()

    def pass_or_raise(self, run_id: UUID, call_info: dict[str, Any]) -> None:
        """
        Let the call of that run pass, or not.

        Raises:
            BudgetExceededError: A budget that covers it is spent and says stop.
        """
        if outer_call() is not None:
            return  # a memory operation's own: mem0's, say, whose write would be lost
        for budgets, faults in list(self._budgets.items()):
            refusal = _refusal(budgets, faults, run_id, call_info)
            if refusal is not None:
                graph_callbacks().rejected(run_id, refusal)
                raise refusal


def _refusal(
    budgets: Budgets, faults: Faults, run_id: UUID, call_info: dict[str, Any]
) -> BudgetExceededError | None:
    try:
        scope = _scope(budgets, run_id)
        return None if scope is None else budgets.refusal(scope, _model(call_info))
    except Exception as exc:  # noqa: BLE001 - a budget that cannot be read stops nobody
        faults.note("budgets.refusal", exc)
        return None


def _scope(budgets: Budgets, run_id: UUID) -> Scope | None:
    """Return the scope that a call is counted for on *budgets*. None: it is not."""
    run = graph_callbacks().runs.open(run_id)
    if run is None:
        return None
    for observer in run.observers_above():
        if isinstance(observer, Meter) and observer.budgets is budgets:
            return observer.scope_of(run)
    return None


def _model(call_info: dict[str, Any]) -> str | None:
    for part in ("metadata", "invocation_params"):
        about = call_info.get(part)
        known = cast("dict[str, Any]", about) if isinstance(about, dict) else {}
        for name in _MODEL_NAMES:
            if isinstance(found := known.get(name), str):
                return found
    return None


class _GateHandler(BaseCallbackHandler):
    """
    Callback handler that asks the gate before a model is called, and raises its refusal.

    Args:
        gate: The budgets to ask.
    """

    raise_error = True

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    @property
    def ignore_llm(self) -> bool:
        """Models that complete text, and all tokens: each would be a call."""
        return True

    @property
    def ignore_chat_model(self) -> bool:
        """The start of chat models."""
        return True

    @property
    def ignore_chain(self) -> bool:
        """Chains are not model calls."""
        return True

    @property
    def ignore_agent(self) -> bool:
        """As `ignore_chain`; tools count as agents."""
        return True

    @property
    def ignore_retriever(self) -> bool:
        """As `ignore_chain`."""
        return True


class ChatGate(_GateHandler):
    """Callback handler that asks the gate before a chat model is called."""

    # Asynchronous handlers that run inline are awaited one after the other, and those after one
    # that raises never are, which Python warns of. The others are gathered.
    run_inline = False

    @property
    def ignore_chat_model(self) -> bool:
        """True while there are no budgets."""
        return not self.gate

    def on_chat_model_start(
        self,
        serialized: Any,  # noqa: ARG002 - LangChain's signature, here and below
        messages: Any,  # noqa: ARG002
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Let the call pass, or not."""
        self.gate.pass_or_raise(run_id, kwargs)


class TextGate(_GateHandler):
    """Callback handler that asks the gate before a model that completes text is called."""

    run_inline = True  # here LangChain tells all such handlers in one go

    @property
    def ignore_llm(self) -> bool:
        """True while there are no budgets."""
        return not self.gate

    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Let the call pass, or not."""
        self.gate.pass_or_raise(run_id, kwargs)


def guard_models(budgets: Budgets, faults: Faults) -> None:
    """Ask *budgets* before every model call from now on, if one of them may stop it."""
    if budgets.can_stop:
        gate().watch(budgets, faults)


@cache
def gate() -> Gate:
    """Return the gate of this process, and have LangChain ask it from now on."""
    graph_callbacks()  # told first: of a call that is not made after all, it reports that
    made = Gate()
    for name, handler in (("chat", ChatGate(made)), ("text", TextGate(made))):
        hook: ContextVar[Any] = ContextVar(f"mnemoscope_{name}_gate", default=handler)
        register_configure_hook(hook, inheritable=True)
    return made
