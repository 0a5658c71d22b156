"""The step that calls the store, on a worker with a deadline or on the caller's thread."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from ...telemetry.process.fork_lock import ForkLock
from ..limits.time_left import TimeLimit
from ..limits.workers import Expired, Workers, driven
from .call import Call, Hold
from .operation import Arguments
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
        self._stay = None if turns is None else turns.stay
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
        if self._stay is not None and (turn := self._stay(call)) is not None:
            return self._work_now(call, invoke, turn)
        if self._breaks_off is not None and self._breaks_off(call) and not self._holds_callers():
            return self._work_here(call, invoke, call.left_s or deadline_s)
        work, late = partial(self._work, call, invoke), partial(self._note_late, call)
        return self._workers.run(work, call.left_s or deadline_s, late)

    def arun(self, call: Call, invoke: AsyncInvoke) -> Awaitable[Any]:
        """Call the store with a coroutine, which the deadline cancels, and await its result."""
        for each in self._around:
            invoke = each.awrap(call, invoke)
        if self._blocks is not None:
            if self._blocks():
                if self._stay is None or (turn := self._stay(call)) is None:
                    return self._run_blocking(call, invoke)
                return self._await_in_turn(call, invoke, turn)
            if self._serialise is not None:
                invoke = in_turns(invoke, self._serialise)
        return self._await(call, invoke)

    async def _await_in_turn(
        self, call: Call, invoke: AsyncInvoke, turn: AbstractContextManager[Any]
    ) -> Any:
        try:
            # Awaited all the same: what is called may encode on an executor first.
            return await self._await(call, invoke)
        finally:
            turn.__exit__(None, None, None)

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
        work = partial(self._work, call, _driving(invoke))
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

    def _work_now(self, call: Call, invoke: Invoke, turn: AbstractContextManager[Any]) -> Any:
        call.holds = [_end]
        try:
            return self._ask(call, invoke)
        finally:
            turn.__exit__(None, None, None)
            call.let_go()

    def _work_here(self, call: Call, invoke: Invoke, left_s: float) -> Any:
        limit = TimeLimit(self._clock, left_s)
        self._under_way[call] = limit.until
        limit.begin()
        try:
            return self._work(call, invoke)
        except Exception as exc:
            # Whatever it says: the client has broken the call off, and this is how it says so.
            if self._clock() >= limit.until - _EARLY_S:
                raise Expired from exc
            raise
        finally:
            limit.end()
            del self._under_way[call]
            if self._clock() > limit.until + HELD_S:
                self._note_held()

    def _holds_callers(self) -> bool:
        if self.held:
            return True
        if not self._under_way:
            return False
        overdue = self._clock() - HELD_S
        # One that is still under way then is in a wait that nothing ends.
        return any(until < overdue for until in list(self._under_way.values()))

    def _note_held(self) -> None:
        with self._late_lock:
            self.held += 1

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


def _driving(invoke: AsyncInvoke) -> Invoke:
    """Return *invoke*, whose coroutines wait for nothing, as a synchronous function."""

    def driving(given: Arguments) -> Any:
        return driven(invoke(given).__await__())

    return driving


def _end(call: Call) -> None:
    call.ended = True
    if call.lender is None:
        call.limits.bulkhead.leave()  # as `leave_place`, for most calls
    else:
        call.leave_place()


class in_turns:  # noqa: N801 - used as a function
    """
    A coroutine function whose steps, from one wait to the next, each hold a lock.

    For coroutines that do wait although most of their client's do not. What waits holds nothing, so
    that it never keeps a thread with synchronous work from ending.
    """

    def __init__(self, invoke: AsyncInvoke, turn: AbstractContextManager[Any]) -> None:
        self._invoke = invoke
        self._turn = turn

    async def __call__(self, given: Arguments) -> Any:
        """Await the coroutine, step by step."""
        return await _Steps(self._invoke(given), self._turn)


class _Steps:
    def __init__(self, awaited: Awaitable[Any], turn: AbstractContextManager[Any]) -> None:
        self._awaited = awaited
        self._turn = turn

    def __await__(self) -> Generator[Any, Any, Any]:
        steps: Any = self._awaited.__await__()
        advance = partial(steps.send, None)
        while True:
            try:
                with self._turn:
                    waits_for = advance()
            except StopIteration as end:
                return end.value
            try:
                advance = partial(steps.send, (yield waits_for))
            except BaseException as exc:  # noqa: BLE001 - the coroutine's, to deal with or to raise
                advance = partial(steps.throw, exc)
