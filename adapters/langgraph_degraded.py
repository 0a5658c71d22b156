"""
A checkpointer's guard for those who want their agents to go on while the database is away.

Checkpoints that the saver does not take wait in this process and are read back from it; the saver
is given them, in order, once it takes them. Until then the process must live: what waits is in its
memory alone. Reads of threads that wait for nothing still raise, as without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any

from ..memory.call import Call
from ..memory.errors import DeadlineExceededError, StoreUnavailableError
from ..memory.guard import AsyncInvoke, Invoke
from ..memory.lazy import LazyGuard
from ..memory.operation import Arguments, Method, Operation
from ..memory.runtime import Runtime
from ..telemetry.event import Journalled, OperationClass, Status
from .langgraph_checkpoint_arguments import configurable
from .langgraph_overlay import Overlay, UnknownThreadError, Waiting

POLL_S = 0.25
_LONGEST_PAUSE_S = 5.0
_MOST_DOUBLINGS = 10
_BEHIND = "earlier checkpoints wait in this process"


class DegradedGuard(LazyGuard):
    """
    A guard that answers for its saver.

    Args:
        store: As for `Guard`, as are the next two.
        runtime: What the guards of a scope share.
        failed: Tells a store's failure from a caller's mistake.
        saver: The saver.
        rows: The rows of ``put`` and ``put_writes``, which redact nothing.
    """

    def __init__(
        self,
        store: str,
        runtime: Runtime,
        *,
        failed: Callable[[BaseException], bool],
        saver: Any,
        rows: dict[str, Method],
    ) -> None:
        super().__init__(store, runtime, failed=failed)
        self._saver = saver
        self._rows = rows
        self._overlay = Overlay()
        self._task: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._failures = 0

    @property
    def waits(self) -> int:
        """How many writes wait for the saver."""
        return self._overlay.waits

    def call(self, operation: Operation, invoke: Invoke, *, inline: bool = False) -> Any:
        """Make one synchronous call: see `Guard.call`."""
        try:
            return super().call(operation, invoke, inline=inline)
        finally:
            if self._overlay.waits:
                self.runtime.replayer.watch(self)

    async def acall(self, operation: Operation, invoke: AsyncInvoke) -> Any:
        """Make one asynchronous call: see `Guard.acall`."""
        try:
            return await super().acall(operation, invoke)
        finally:
            if self._overlay.waits:
                self._begin_task()

    # -- one call ----------------------------------------------------------------------------------

    def _begun(self, operation: Operation) -> Call:
        call = super()._begun(operation)
        if isinstance(operation, _Again):
            call.journal = Journalled.REPLAYED
        else:
            call.behind = self._overlay.is_behind(_thread_of(call.arguments))
        return call

    def _take_place(self, call: Call) -> None:
        if call.behind:
            call.status = Status.REJECTED
            call.refusal = StoreUnavailableError(self.store, _BEHIND)
        else:
            super()._take_place(call)

    def _answered(self, call: Call, result: Any) -> Any:
        if call.journal is not Journalled.REPLAYED:
            self._follow(call, result)
        return super()._answered(call, result)

    def _follow(self, call: Call, result: Any) -> None:
        thread_id = _thread_of(call.arguments)
        try:
            if call.method.op_class is OperationClass.FORGET and thread_id is not None:
                self._overlay.forget(thread_id)
            self._overlay.saw(call.method.name, call.arguments, result)
        except Exception as exc:  # noqa: BLE001 - a thread that cannot be copied is not followed
            self.runtime.faults.note("checkpoint.overlay", exc)
            if thread_id is not None:
                self._overlay.forget(thread_id)

    def _makes_neutral(self, call: Call) -> bool:
        if call.journal is Journalled.REPLAYED or call.status is Status.REFUSED:
            return False
        try:
            if call.method.op_class is OperationClass.CHECKPOINT:
                call.answer, given_up = self._overlay.keep(call.method.name, call.arguments)
                for each in given_up:
                    each.context.copy().run(self._gave_up, each)
            elif call.method.name == "get_tuple":
                call.answer = self._overlay.find(call.arguments)
            else:
                return False
        except UnknownThreadError:
            return False
        except Exception as exc:  # noqa: BLE001 - then the caller sees the store's error
            self.runtime.faults.note("checkpoint.overlay", exc)
            return False
        return True

    def _gave_up(self, waiting: Waiting) -> None:
        """Tell of a step that the saver will never have: a later one has its channels."""
        call = self._begun(_Again(self._rows[waiting.method], waiting.arguments))
        self._tenancy.name_owner(call)
        call.redacted = self._confidentiality.begin(call)
        call.journal = Journalled.LOST
        self._report.ended(call, Status.DEGRADED)

    def _classified(self, call: Call, exc: BaseException) -> Status:
        status = super()._classified(call, exc)
        if call.journal is Journalled.REPLAYED:
            call.journal = Journalled.NO if self._is_failure(exc) else Journalled.LOST
        return status

    def _keep(self, call: Call, status: Status) -> None:
        if call.neutral:
            call.journal = Journalled.APPENDED
        elif status is Status.REJECTED:
            call.journal = Journalled.NO

    # -- giving the saver what waits ---------------------------------------------------------------

    def replay(self) -> bool:
        """Write what waits, as far as the saver takes it. Returns whether nothing does any more."""
        for thread in self._due():
            if not thread.busy.acquire(blocking=False):
                continue
            try:
                while (waiting := self._overlay.next(thread)) is not None:
                    taken = waiting.context.copy().run(self._write, waiting)
                    if taken is None:
                        return False
                    self._overlay.done(thread, waiting, taken=taken)
            finally:
                thread.busy.release()
        return not self._overlay.waits

    async def areplay(self) -> bool:
        """Write what waits, as `replay`, through the saver's coroutines."""
        loop = asyncio.get_running_loop()
        for thread in self._due():
            if not thread.busy.acquire(blocking=False):
                continue
            try:
                while (waiting := self._overlay.next(thread)) is not None:
                    writing = self._awrite(waiting)
                    taken = await loop.create_task(writing, context=waiting.context.copy())
                    if taken is None:
                        return False
                    self._overlay.done(thread, waiting, taken=taken)
            finally:
                thread.busy.release()
        return not self._overlay.waits

    def _due(self) -> Any:
        return self._overlay.dirty() if self.runtime.clock() >= self._not_before else ()

    def _write(self, waiting: Waiting) -> bool | None:
        """Returns whether the saver took it, or None: not now."""
        target = getattr(self._saver, waiting.method)
        again = _Again(self._rows[waiting.method], waiting.arguments)
        try:
            super().call(again, lambda given: target(**given))
        except Exception as exc:  # noqa: BLE001 - it is reported as the call's outcome
            return self._failed_again(exc)
        self._failures = 0
        return True

    async def _awrite(self, waiting: Waiting) -> bool | None:
        target = getattr(self._saver, f"a{waiting.method}")
        again = _Again(self._rows[waiting.method], waiting.arguments)
        try:
            await super().acall(again, lambda given: target(**given))
        except Exception as exc:  # noqa: BLE001 - it is reported as the call's outcome
            return self._failed_again(exc)
        self._failures = 0
        return True

    def _failed_again(self, exc: Exception) -> bool | None:
        ours = (StoreUnavailableError, DeadlineExceededError)
        if not isinstance(exc, ours) and not self._is_failure(exc):
            return False
        pause_s = min(POLL_S * 2**self._failures, _LONGEST_PAUSE_S)
        self._failures = min(self._failures + 1, _MOST_DOUBLINGS)
        self._not_before = self.runtime.clock() + pause_s
        return None

    def _begin_task(self) -> None:
        task = self._task
        if task is None or task.done() or task.get_loop().is_closed():
            # A context of its own: none of this is part of the call that happens to come first.
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._areplays(), context=Context())

    async def _areplays(self) -> None:
        while not await self.areplay():  # noqa: ASYNC110 - a database does not say when it is back
            await asyncio.sleep(POLL_S)


class _Again(Operation):
    """A write that waited."""

    __slots__ = ()


def _thread_of(arguments: Arguments) -> str | None:
    found = configurable(arguments).get("thread_id", arguments.get("thread_id"))
    return found if isinstance(found, str) else None
