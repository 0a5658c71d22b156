"""
The gate in front of model calls: none is made for a budget that is spent and says stop.

LangChain tells callbacks of a model call before it makes it, and lets the error of a handler with
``raise_error`` through: the call is not made, and the node that wanted it gets the error. A call
that is under way is never touched; others wait for it where it may use up what is left.
"""

from __future__ import annotations

import logging
import sys
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from contextvars import ContextVar
from functools import cache
from inspect import CO_COROUTINE
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers.context import register_configure_hook

from ....memory.accounting import ModelAccounting
from ....memory.errors import HeldError
from ....memory.guard.call import outer_call
from ....memory.run_observers import RunObserver, UndecidedError
from ....telemetry.event.event import Status
from ...toolkit.sync_async import running_loop
from .cached_answers import is_cached
from .callbacks import graph_callbacks
from .messages import sources_of
from .meter import Meter
from .spans import Run, RunKind
from .watched import SAVER

_MODEL_NAMES: Final = ("ls_model_name", "model", "model_name")

_LOGGER: Final = logging.getLogger("langchain_core.callbacks.manager")
"""Where LangChain warns of errors in handlers: a refusal is none."""


class Wait(Protocol):
    """The wait of a model call for others."""

    def block(self) -> None:
        """Wait, and hold the thread."""
        ...

    async def pause(self) -> None:
        """Wait, and let other tasks run."""
        ...


Holds: TypeAlias = "Callable[[Any, Run, PendingModelCall], Iterator[Wait]]"
"""Yields what a call waits for, given the budgets, its run and the call. Raises to refuse it."""


class Gate:
    """The budgets and observers of all living scopes, consulted before each model call."""

    def __init__(self) -> None:
        self._budgets: weakref.WeakKeyDictionary[object, Holds] = weakref.WeakKeyDictionary()
        self.observed: weakref.WeakSet[ModelAccounting] = weakref.WeakSet()
        self.handlers: list[_GateHandler] = [ChatGate(self), TextGate(self)]

    def __bool__(self) -> bool:
        """Return whether there are budgets or observers to ask."""
        return bool(self._budgets or self.observed)

    def watch(self, budgets: object, holds: Holds) -> None:
        """Have *holds* say from now on what calls wait for, as long as *budgets* live."""
        self._rest_after(budgets)
        self._budgets[budgets] = holds
        self._wake()
        graph_callbacks().runs.note_around()

    def clear(self) -> None:
        """Drop all budgets and observers."""
        self._budgets.clear()
        self.observed.clear()
        self._wake()

    def ask(self, accounting: ModelAccounting) -> None:
        """Ask the observers of *accounting* from now on, as long as it lives."""
        self._rest_after(accounting)
        self.observed.add(accounting)
        self._wake()

    def observers(self) -> Iterator[RunObserver]:
        """Yield the observers of all scopes."""
        for each in list(self.observed):
            yield from each.observers

    def _rest_after(self, watched: object) -> None:
        # Before it is added: what was registered last is called first.
        weakref.finalize(watched, self._wake).atexit = False

    def _wake(self) -> None:
        """Have LangChain ask those handlers only that have somebody to ask in turn."""
        for each in self.handlers:
            each.listen()
        graph_callbacks().note_for_observers(are_there=bool(self.observed))

    def pass_or_raise(self, call: PendingModelCall) -> None:
        """
        Let a call pass once its budgets have something left for it, or not.

        Raises:
            BudgetExceededError: A budget that covers it is spent and says stop.
        """
        with closing(self._waits(call)) as waits:
            for each in waits:
                each.block()

    async def apass_or_raise(self, call: PendingModelCall) -> None:
        """As `pass_or_raise`, while other tasks run."""
        with closing(self._waits(call)) as waits:
            for each in waits:
                await each.pause()

    def _waits(self, call: PendingModelCall) -> Generator[Wait]:
        """Yield what a call has to wait for, until it may be made."""
        run = call.begin()
        if run is None or outer_call() is not None:
            return  # a memory operation's own: mem0's, say, whose write would be lost
        try:
            if self.observed:
                yield from _asked(run, name=model_of(call.about) or "")
            for budgets, holds in list(self._budgets.items()):
                yield from holds(budgets, run, call)
        except GeneratorExit:  # whoever wanted the call is gone
            graph_callbacks().runs.end(run, Status.CANCELLED)
            raise
        finally:
            run.around = ()  # else each call would hold those before it


def ask_observers(run: Run, **about: Any) -> None:
    """
    Give *run*, which begins, to the observers of the scopes that watch it.

    Raises:
        Exception: What one of them ends it with, such as the `RuleError` of a rule.
    """
    for wait in _asked(run, **about):
        if running_loop() is not None:
            return  # whose thread nobody holds: the next model call waits
        wait.block()


def _asked(run: Run, **about: Any) -> Iterator[Wait]:
    """Yield what the observers of a run that begins wait for; raise what one ends it with."""
    while (error := _begun(run, **about)) is not None:
        if isinstance(error, UndecidedError):
            yield error
            continue
        raise_or_resume(run, error)


def raise_or_resume(run: Run, error: Exception) -> None:
    """Raise what ends *run*; or interrupt the graph, and return once it is resumed."""
    try:
        resume, answer = _answer_of_human(error)
    except Exception as exc:
        if isinstance(error, HeldError) and error.tell is not None:
            error.tell()
        graph_callbacks().rejected(run.run_id, exc)
        raise
    resume(answer)


def _begun(run: Run, **about: Any) -> Exception | None:
    return _first_error(run, lambda each, meter: each.begins(meter.observed(run, **about)))


def _is_resumable() -> bool:
    """Return whether the code that runs is in a node of a graph that can be resumed."""
    config = var_child_runnable_config.get() or {}
    return bool(config.get("configurable", {}).get(SAVER))


def _answer_of_human(error: Exception) -> tuple[Callable[[Any], None], Any]:
    """
    Interrupt the graph; return what it is resumed with, and who takes that, once it runs again.

    Raises:
        Exception: *error*, where it is no stop that was left to a human, or nothing is resumable.
    """
    if not isinstance(error, HeldError) or error.resume is None or not _is_resumable():
        raise error
    from langgraph.types import interrupt  # noqa: PLC0415 - few runs are left to humans

    shown = {"approval": error.approval, "rule": error.rule, "reason": error.reason}
    return error.resume, interrupt(shown)


def tell_of_chunk(run_id: UUID) -> None:
    """
    Give a chunk of a model's stream to the observers that want such.

    Raises:
        Exception: What one of them ends it with.
    """
    run = graph_callbacks().runs.open(run_id)
    if run is None:
        return
    error = _first_error(run, lambda each, meter: each.streams(meter.observed(run)))
    if error is not None:
        raise error


def _first_error(
    run: Run, ask: Callable[[RunObserver, Meter], Exception | None]
) -> Exception | None:
    """Return what the first observer says that objects, those of the nearest scope first."""
    for meter in run.observers_above():
        accounting = meter.accounting if isinstance(meter, Meter) else None
        for each in () if accounting is None else accounting.observers:
            try:
                error = ask(each, cast("Meter", meter))
            except Exception as exc:  # noqa: BLE001 - an error of ours ends nobody's run
                graph_callbacks().note(exc)
                continue
            if error is not None:
                return error
    return None


class PendingModelCall:
    """
    A model call that LangChain asks for.

    Args:
        serialized: The model, as LangChain writes it down.
        messages: What is said to it. None: LangChain has looked into its cache already.
        about: The rest that LangChain tells of it.
        can_wait: Whether it is held back: no thread is that runs an event loop.
    """

    def __init__(
        self,
        run_id: UUID,
        serialized: Any,
        messages: Any,
        about: dict[str, Any],
        *,
        can_wait: bool,
    ) -> None:
        self.run_id = run_id
        self.about = about
        self.can_wait = can_wait
        self._serialized = serialized
        self._messages = messages

    def begin(self) -> Run | None:
        """Return its run, which begins. None: it is not recorded."""
        callbacks = graph_callbacks()
        inputs = self._serialized, self._messages
        return callbacks.begin(
            callbacks.on_chat_model_start, *inputs, run_id=self.run_id, **self.about
        )

    def is_free(self) -> bool:
        """Return whether LangChain's cache has the answer."""
        if self._messages is None or not graph_callbacks().is_cache_used:
            return False
        return is_cached(self._serialized, self._messages, self.about)


def model_of(call_info: dict[str, Any]) -> str | None:
    """Return the model that a call asks. None: LangChain does not say."""
    for part in ("metadata", "invocation_params"):
        about = call_info.get(part)
        known = cast("dict[str, Any]", about) if isinstance(about, dict) else {}
        for name in _MODEL_NAMES:
            if isinstance(found := known.get(name), str):
                return found
    return None


def _is_awaited() -> bool:
    """Return whether the caller of this function's caller is a coroutine function."""
    return bool(sys._getframe(2).f_code.co_flags & CO_COROUTINE)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - no other way


class _GateHandler(BaseCallbackHandler):
    """
    Callback handler that asks the gate before a model is called, and raises its refusal.

    LangChain calls the same method of a handler for calls of both colours. It awaits it if it is a
    coroutine function, where it is called for an asynchronous one, which is so in a coroutine.
    """

    raise_error = True

    if not TYPE_CHECKING:
        # Attributes where LangChain has properties: it asks for them at every event of every run.
        ignore_llm = ignore_chat_model = ignore_chain = ignore_agent = ignore_retriever = True

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def listen(self) -> None:
        """Listen to LangChain while there is somebody to ask."""


class ChatGate(_GateHandler):
    """Callback handler that asks the gate before a chat model is called."""

    # Asynchronous handlers that run inline are awaited one after the other, and those after one
    # that raises never are, which Python warns of. The others are gathered.
    run_inline = False

    def listen(self) -> None:
        """Listen to the beginnings of chat models."""
        vars(self).update(ignore_chat_model=not self.gate)

    @property
    def on_chat_model_start(self) -> Callable[..., Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Let the call pass, or not."""
        return self._awaited if _is_awaited() else self._called

    def _called(self, serialized: Any, messages: Any, *, run_id: UUID, **about: Any) -> None:
        can_wait = running_loop() is None
        self.gate.pass_or_raise(
            PendingModelCall(run_id, serialized, messages, about, can_wait=can_wait)
        )

    async def _awaited(self, serialized: Any, messages: Any, *, run_id: UUID, **about: Any) -> None:
        await self.gate.apass_or_raise(
            PendingModelCall(run_id, serialized, messages, about, can_wait=True)
        )


class TextGate(_GateHandler):
    """Callback handler that asks the gate before a model that completes text is called."""

    run_inline = True  # here LangChain tells all such handlers in one go

    def listen(self) -> None:
        """Listen to those of models that complete text."""
        vars(self).update(ignore_llm=not self.gate)

    @property
    def on_llm_start(self) -> Callable[..., Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Let the call pass, or not."""
        return self._awaited if _is_awaited() else self._called

    def _called(self, serialized: Any, _prompts: Any, *, run_id: UUID, **about: Any) -> None:
        can_wait = running_loop() is None
        self.gate.pass_or_raise(
            PendingModelCall(run_id, serialized, None, about, can_wait=can_wait)
        )

    async def _awaited(self, serialized: Any, _prompts: Any, *, run_id: UUID, **about: Any) -> None:
        await self.gate.apass_or_raise(
            PendingModelCall(run_id, serialized, None, about, can_wait=True)
        )


class RunGate(_GateHandler):
    """Callback handler that gives observers tools, nodes and graphs before they begin."""

    run_inline = True

    def listen(self) -> None:
        """Listen to the beginnings of nodes and tools."""
        is_deaf = not self.gate.observed
        is_unheard = not any(each.wants_chunks for each in self.gate.observers())
        vars(self).update(
            ignore_chain=is_deaf,
            ignore_agent=is_deaf,
            ignore_retriever=is_deaf,
            ignore_llm=is_unheard,
        )

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **about: Any) -> None:
        """Let no node begin of a run that a rule has stopped."""
        callbacks = graph_callbacks()
        run = callbacks.begin(callbacks.on_chain_start, serialized, inputs, run_id=run_id, **about)
        if run is None:
            return
        if run.kind is RunKind.NODE:
            ask_observers(run)
        elif about.get("parent_run_id") is None:
            ask_observers(run, sources=_sources(inputs))

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **about: Any) -> None:
        """Let a tool be called, or not."""
        callbacks, inputs = graph_callbacks(), about.get("inputs")
        run = callbacks.begin(
            callbacks.on_tool_start, serialized, input_str, run_id=run_id, **about
        )
        if run is not None:
            ask_observers(run, given=input_str if inputs is None else inputs)
        else:  # of no graph that is watched: what it answers is read all the same
            self._read(_name(serialized, about))

    def on_retriever_start(self, serialized: Any, query: str, **about: Any) -> None:
        """Note that what it finds is read, as a tool's answer is."""
        del query
        self._read(_name(serialized, about))

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **_about: Any) -> None:  # noqa: ARG002
        """Let a model go on streaming, or not."""
        tell_of_chunk(run_id)

    def on_stream_event(self, event: Any, *, run_id: UUID, **_about: Any) -> None:  # noqa: ARG002
        """Let it, in the third version of streaming."""
        tell_of_chunk(run_id)

    def _read(self, name: str) -> None:
        for each in self.gate.observers():
            try:
                each.reads(name)
            except Exception as exc:  # noqa: BLE001 - an error of ours ends nobody's run
                graph_callbacks().note(exc)


def _sources(inputs: Any) -> frozenset[str | None]:
    """Return whose messages a graph is given."""
    try:
        return frozenset(sources_of(inputs))
    except Exception as exc:  # noqa: BLE001 - an error of ours ends nobody's run
        graph_callbacks().note(exc)
        return frozenset()


def _name(serialized: Any, about: dict[str, Any]) -> str:
    known = cast("dict[str, Any]", serialized) if isinstance(serialized, dict) else {}
    return str(about.get("name") or known.get("name") or "")


def guard_runs(accounting: ModelAccounting) -> None:
    """Ask its observers before every model call, tool and node from now on, while it lives."""
    _watch_runs()
    gate().ask(accounting)


@cache
def _watch_runs() -> None:
    """Have LangChain ask before tools and nodes, which it does for budgets alone not."""
    handler = RunGate(gate())
    gate().handlers.append(handler)
    hook: ContextVar[Any] = ContextVar("mnemoscope_run_gate", default=handler)
    register_configure_hook(hook, inheritable=True)


_GATES: Final = {("ChatGate",), ("TextGate",), ("RunGate",)}


@cache
def gate() -> Gate:
    """Return the gate of this process, and have LangChain ask it from now on."""
    graph_callbacks()  # told first: of a call that is not made after all, it reports that
    made = Gate()
    for name, handler in zip(("chat", "text"), made.handlers, strict=True):
        hook: ContextVar[Any] = ContextVar(f"mnemoscope_{name}_gate", default=handler)
        register_configure_hook(hook, inheritable=True)
    _LOGGER.addFilter(_is_no_refusal)
    return made


def _is_no_refusal(record: logging.LogRecord) -> bool:
    """Return whether a warning of LangChain's is of anything but a call that a budget refuses."""
    args = record.args
    return not (isinstance(args, tuple) and args[:1] in _GATES)
