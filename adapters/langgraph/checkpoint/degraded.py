"""
Degraded checkpoints: a guard's step that keeps threads going while their database is down.

Checkpoints that the saver does not take wait in this process and are read back from it; the saver
is given them, in order, once it takes them. Until then the process must live: what waits is in its
memory alone. Reads of threads that wait for nothing still raise, as without it.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from contextvars import Context
from typing import Any

from ....memory.errors import StoreUnavailableError
from ....memory.guard.call import Call
from ....memory.guard.guard import Guard
from ....memory.guard.operation import Arguments, Method, Operation
from ....memory.guard.outages import is_outage
from ....memory.guard.step import Faces
from ....memory.journal.replayer import Replayer
from ....telemetry.event.event import Journalled, OperationClass, Status
from ....telemetry.process.faults import Faults
from .arguments import configurable
from .overlay import Overlay, PendingWrite, UnknownThreadError

POLL_S = 0.25
_LONGEST_PAUSE_S = 5.0
_MOST_DOUBLINGS = 10
_BEHIND = "earlier checkpoints wait in this process"


class DegradedCheckpoints:
    """
    Step that holds the writes of a saver that is down, answers reads from them, and replays them.

    Args:
        store: The guard's store.
        saver: The saver.
        rows: The rows of ``put`` and ``put_writes``, which redact nothing.
        replayer: The thread that writes what waits, for savers that are called synchronously.
        faults: Where errors of our own are noted.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        store: str,
        *,
        saver: Any,
        rows: dict[str, Method],
        replayer: Replayer,
        faults: Faults,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._saver = saver
        self._rows = rows
        self._replayer = replayer
        self._faults = faults
        self._clock = clock
        self._guard: Callable[[], Guard | None] = lambda: None
        self._overlay = Overlay()
        self._task: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._failures = 0

    def write_through(self, guard: Guard) -> None:
        """Replay waiting writes through *guard*."""
        self._guard = weakref.ref(guard)

    @property
    def waits(self) -> int:
        """Number of writes that wait for the saver."""
        return self._overlay.waits

    def faces(self, _method: Method) -> Faces:
        """Return the faces of this step, which is for every method."""
        return Faces(self._refuse_behind, self._after, aafter=self._aafter)

    def _refuse_behind(self, call: Call) -> None:
        if call.journal is Journalled.LOST:
            raise _GivenUpError
        if call.journal is Journalled.NO and self._overlay.is_behind(_thread_of(call.arguments)):
            raise StoreUnavailableError(self._store, _BEHIND)

    def _after(self, call: Call) -> None:
        first = call.journal is Journalled.NO
        self._answer_for_saver(call)
        if first and self._overlay.waits:
            self._replayer.watch(self)

    async def _aafter(self, call: Call) -> None:
        first = call.journal is Journalled.NO
        self._answer_for_saver(call)
        if first and self._overlay.waits:
            self._begin_task()

    # -- one call ----------------------------------------------------------------------------------

    def _answer_for_saver(self, call: Call) -> None:
        if call.journal is Journalled.LOST:
            call.error, call.status = None, Status.DEGRADED
        elif call.journal is Journalled.REPLAYED:
            if call.error is not None:
                never = call.admission is not None and not call.outage
                call.journal = Journalled.LOST if never else Journalled.NO
        elif call.error is None:
            self._follow(call)
        elif (call.outage or call.status is Status.REJECTED) and self._make_neutral(call):
            call.neutral, call.journal = True, Journalled.APPENDED
            if call.status is Status.ERROR:
                call.status = Status.DEGRADED

    def _follow(self, call: Call) -> None:
        thread_id = _thread_of(call.arguments)
        try:
            if call.method.op_class is OperationClass.FORGET and thread_id is not None:
                self._overlay.forget(thread_id)
            self._overlay.saw(call.method.name, call.arguments, call.result)
        except Exception as exc:  # noqa: BLE001 - a thread that cannot be copied is not followed
            self._faults.note("checkpoint.overlay", exc)
            if thread_id is not None:
                self._overlay.forget(thread_id)

    def _make_neutral(self, call: Call) -> bool:
        try:
            if call.method.op_class is OperationClass.CHECKPOINT:
                call.result, given_up = self._overlay.keep(call.method.name, call.arguments)
                for each in given_up:
                    each.context.copy().run(self._give_up, each)
            elif call.method.name == "get_tuple":
                call.result = self._overlay.find(call.arguments)
            else:
                return False
        except UnknownThreadError:
            return False
        except Exception as exc:  # noqa: BLE001 - then the caller sees the store's error
            self._faults.note("checkpoint.overlay", exc)
            return False
        return True

    def _give_up(self, waiting: PendingWrite) -> None:
        """Report a step that the saver will never have: a later one has its channels."""
        if (guard := self._guard()) is not None:
            guard.call(self._operation(waiting, Journalled.LOST), lambda _given: None)

    def _operation(self, waiting: PendingWrite, journal: Journalled) -> Operation:
        return Operation(self._rows[waiting.method], waiting.arguments, journal)

    # -- replay ------------------------------------------------------------------------------------

    def replay(self) -> bool:
        """Write what waits until the saver refuses. Return whether nothing waits any more."""
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
        """As `replay`, through the saver's coroutines."""
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
        return self._overlay.dirty() if self._clock() >= self._not_before else ()

    def _write(self, waiting: PendingWrite) -> bool | None:
        """Write once. Return whether the saver took it; None: it is still down."""
        target = getattr(self._saver, waiting.method)
        if (guard := self._guard()) is None:
            return None
        again = self._operation(waiting, Journalled.REPLAYED)
        try:
            guard.call(again, lambda given: target(**given))
        except Exception as exc:  # noqa: BLE001 - it is reported as the call's outcome
            return self._failed_again(exc)
        self._failures = 0
        return True

    async def _awrite(self, waiting: PendingWrite) -> bool | None:
        target = getattr(self._saver, f"a{waiting.method}")
        if (guard := self._guard()) is None:
            return None
        again = self._operation(waiting, Journalled.REPLAYED)
        try:
            await guard.acall(again, lambda given: target(**given))
        except Exception as exc:  # noqa: BLE001 - it is reported as the call's outcome
            return self._failed_again(exc)
        self._failures = 0
        return True

    def _failed_again(self, exc: Exception) -> bool | None:
        if not is_outage(exc):
            return False
        pause_s = min(POLL_S * 2**self._failures, _LONGEST_PAUSE_S)
        self._failures = min(self._failures + 1, _MOST_DOUBLINGS)
        self._not_before = self._clock() + pause_s
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


class _GivenUpError(Exception):
    """A step that the saver will never have: a later one has its channels."""


def _thread_of(arguments: Arguments) -> str | None:
    found = configurable(arguments).get("thread_id", arguments.get("thread_id"))
    return found if isinstance(found, str) else None
