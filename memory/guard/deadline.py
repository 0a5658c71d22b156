"""The step that calls the store, on a worker with a deadline or on the caller's thread."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import coroutine
from typing import Any

from ...telemetry.process.fork_lock import ForkLock
from ..limits.time_left import here
from ..limits.workers import Expired, Workers, driven
from .call import Call, Hold
from .step import Around, AsyncInvoke, BreaksOff, Invoke, Turns

HELD_S = 0.05
"""Seconds past its deadline after which a call on its caller's thread was not broken off."""

_EARLY_S = 0.001
"""Seconds by which a wait may end before its time: clocks differ, and some count milliseconds."""


class Deadline:
    """
    Calls the store and waits for it no longer than the call's class allows.

    A synchronous call of a client that breaks off its calls stays on its caller's thread. Any other
    has a worker. If it outlives its deadline it goes on without its caller and keeps its place in
    the bulkhead until it ends. An asynchronous call is cancelled.

    Args:
        workers: Threads for synchronous calls with a deadline.
        clock: Monotonic seconds.
        turns: How the client takes calls, if it is not thread-safe.
        around: What is around every call of the store, the innermost first.
        breaks_off: Tells whether the client breaks a call off at its deadline. None: it cannot.

    Attributes:
        late_results: Calls that ended after their caller had gone.
        held: Calls that their client did not break off in time. After the first one, and while one
            is under way, each call has a worker.
    """

    def __init__(
        self,
        workers: Workers,
        clock: Callable[[], float],
        *,
        turns: Turns | None = None,
        around: Sequence[Around] = (),
        breaks_off: BreaksOff | None = None,
    ) -> None:
        self.late_results = self.held = 0
        self._breaks_off = breaks_off
        self._under_way: dict[Call, float] = {}
        self._on_late: Callable[[], Callable[[Call], None] | None] = _nothing
        self._workers = workers
        self._clock = clock
        self._serialise = None if turns is None else turns.lock
        self._blocks = None if turns is None else turns.blocks
        self._enter_now = None if turns is None else turns.enter_now
        self._around = tuple(around)
        self._late_lock = ForkLock()
        self._ends: Hold = self._end_async  # one method for all calls: the collector follows each

    def enclose(self, around: Around) -> None:
        """Put *around* outside of all that is around the store already: of a feature, once."""
        self._around = (*self._around, around)

    def observe_late(self, method: Callable[[Call], None]) -> None:
        """Call *method*, of a step, with each late call. Held weakly: the step holds this."""
        self._on_late = weakref.WeakMethod(method)

    def run(self, call: Call, invoke: Invoke, inline: bool = False) -> Any:  # noqa: FBT001, FBT002 - a keyword costs each call
        """
        Call the store and return its result.

        Args:
            call: Its arguments are handed to the store.
            invoke: Calls the store.
            inline: Stay on this thread, without a deadline: for clients bound to it.

        Raises:
            Expired: The deadline passed. The store is still at work.
            BaseException: Whatever the store raised.
        """
        for each in self._around:
            invoke = each.wrap(call, invoke)
        deadline_s = call.limits.deadline_s
        if not deadline_s or inline or call.method.inline:
            return self._work(call, invoke)
        if self._stays(call):
            return self._work_here(call, invoke, call.left_s or deadline_s)
        work, late = partial(self._work, call, invoke), partial(self._note_late, call)
        return self._workers.run(work, call.left_s or deadline_s, late)

    def arun(self, call: Call, invoke: AsyncInvoke) -> Awaitable[Any]:
        """Call the store with a coroutine, which the deadline cancels, and await its result."""
        for each in self._around:
            invoke = each.awrap(call, invoke)
        if self._blocks is not None:
            if self._blocks():
                if self._enter_now and self._stays(call) and self._enter_now():
                    return self._await_in_turn(call, invoke)
                return self._run_blocking(call, invoke)
            if self._serialise is not None:
                invoke = in_turns(invoke, self._serialise)
        return self._await(call, invoke)

    async def _await_in_turn(self, call: Call, invoke: AsyncInvoke) -> Any:
        try:
            # Awaited all the same: what is called may encode on an executor first.
            return await self._await(call, invoke)
        finally:
            if self._serialise is not None:
                self._serialise.__exit__(None, None, None)

    async def _await(self, call: Call, invoke: AsyncInvoke) -> Any:
        call.holds = [self._ends]
        timeout = asyncio.timeout(call.left_s or call.limits.deadline_s or None)
        marks = call.enter()
        try:
            async with timeout:
                call.reached_store_at = self._clock()
                return await invoke(call.arguments)
        except Exception as exc:
            # A client may turn the cancellation into an error of its own: it is still our deadline.
            if timeout.expired():
                raise Expired from exc
            raise
        finally:
            call.leave(marks)
            call.let_go()

    async def _run_blocking(self, call: Call, invoke: AsyncInvoke) -> Any:
        # Its coroutines wait for nothing, so that they run to their end like a function.
        work = partial(self._work, call, lambda given: driven(invoke(given).__await__()))
        late = partial(self._note_late, call)
        timeout_s = call.left_s or call.limits.deadline_s or None
        return await self._workers.acall(work, timeout_s, late)

    def _work(self, call: Call, invoke: Invoke) -> Any:
        call.holds = [_end]
        try:
            if self._serialise is None:
                return self._ask(call, invoke)
            with self._serialise:
                return self._ask(call, invoke)
        finally:
            call.holds.pop()(call)  # as `let_go`

    def _work_here(self, call: Call, invoke: Invoke, left_s: float) -> Any:
        around, until = here.limit, self._clock() + left_s
        if around is not None:
            until = min(until, around[0])
        self._under_way[call] = until
        here.limit = until, self._clock
        try:
            return self._work(call, invoke)
        except Exception as exc:
            # Whatever it says: the client has broken the call off, and this is how it says so.
            if self._clock() >= until - _EARLY_S:
                raise Expired from exc
            raise
        finally:
            here.limit = around
            del self._under_way[call]
            self.held += self._clock() > until + HELD_S

    def _stays(self, call: Call) -> bool:
        if self._breaks_off is None or self.held or not self._breaks_off(call):
            return False
        overdue = self._clock() - HELD_S
        return not any(until < overdue for until in list(self._under_way.values()))

    def _ask(self, call: Call, invoke: Invoke) -> Any:
        marks = call.enter()
        try:
            call.reached_store_at = self._clock()
            result = invoke(call.arguments)
            call.landed = True
            return result
        finally:
            call.leave(marks)

    def _end_async(self, call: Call) -> None:
        # Threads that the store started may be at work after their caller has gone.
        late = call.late
        _end(call)
        if late:
            self._note_late(call)

    def _note_late(self, call: Call) -> None:
        with self._late_lock:
            self.late_results += 1
        if (on_late := self._on_late()) is not None:
            on_late(call)


def _nothing() -> None:
    """Return no observer: no step wants to know of late calls."""


def _end(call: Call) -> None:
    call.ended = True
    if call.lender is None:
        call.limits.bulkhead.leave()  # as `leave_place`, for most calls
    else:
        call.leave_place()


def in_turns(invoke: AsyncInvoke, turn: AbstractContextManager[Any]) -> AsyncInvoke:
    """
    Return *invoke* such that its steps, from one wait to the next, each hold *turn*.

    For coroutines that do wait although most of their client's do not. What waits holds nothing, so
    that it never keeps a thread with synchronous work from ending.
    """

    @coroutine
    def stepwise(steps: Any) -> Generator[Any, Any, Any]:
        advance = partial(steps.send, None)
        while True:
            try:
                with turn:
                    waits_for = advance()
            except StopIteration as end:
                return end.value
            try:
                advance = partial(steps.send, (yield waits_for))
            except BaseException as exc:  # noqa: BLE001 - the coroutine's, to deal with or to raise
                advance = partial(steps.throw, exc)

    return lambda given: stepwise(invoke(given).__await__())
