"""
The chokepoint: every call to a wrapped store goes through one `Guard`.

The order is tenancy, redaction, breaker, bulkhead, deadline, store; then the outcome is classified,
the caller gets the store's own object, a neutral value or the error, and one event is emitted. Two
nets hold it up, and they are different:

* what *observes* fails open: an error of ours in it is counted and the call goes on;
* what *redacts* fails closed: a call whose content could not be redacted does not reach the store.

The store call itself is never inside a net of ours.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from ..telemetry.event import Journalled, Status
from ..telemetry.fork_guard import ForkGuard
from ..telemetry.trace import TraceRef, around
from .call import Call, outer_call
from .confidentiality import Confidentiality
from .context import current
from .deadline import Expired, driven
from .errors import BARRED, DeadlineExceededError, RedactionError, ScopeError, StoreUnavailableError
from .operation import Arguments, Operation, Summary, nobody
from .places import place_of
from .policy import CLASSES, FAILS_OPEN
from .report import Reporter, status_of
from .runtime import Runtime
from .tenancy import Tenancy

UNTRACED = TraceRef(1, 1, sampled=False)
"""Stands in where the host's tracing fails."""

Invoke = Callable[[Arguments], Any]
AsyncInvoke = Callable[[Arguments], Awaitable[Any]]


def store_failed(exc: BaseException) -> bool:
    """Tell a store's failure from a caller's mistake, where an adapter knows no better."""
    return isinstance(exc, OSError)  # ConnectionError and TimeoutError are


class Guard:
    """
    The chokepoint of one wrapped store instance.

    Args:
        store: Its name in events and metrics.
        runtime: What the guards of a scope share.
        failed: Tells a store's failure from a caller's mistake, by the exception.
        serialise: Held around each synchronous call, for clients that are not thread-safe.
        blocks: The client's coroutines are synchronous code: they are run on threads.

    Attributes:
        breakers: One per class of operation.
        bulkheads: One per class of operation.
        late_results: Calls that ended after their caller had gone.
    """

    def __init__(
        self,
        store: str,
        runtime: Runtime,
        *,
        failed: Callable[[BaseException], bool] = store_failed,
        serialise: AbstractContextManager[Any] | None = None,
        blocks: bool = False,
    ) -> None:
        self.store = store
        self.runtime = runtime
        self.late_results = 0
        self._late = ForkGuard()
        places = {each: place_of(each, runtime.policy, runtime.clock) for each in CLASSES}
        self._places = places
        self.breakers = {each: place.breaker for each, place in places.items()}
        self.bulkheads = {each: place.bulkhead for each, place in places.items()}
        self._failed = failed
        self._serialise = serialise
        self._blocks = blocks
        self._tenancy = Tenancy(store, runtime)
        self._confidentiality = Confidentiality(store, runtime)
        self._report = Reporter(store, runtime)
        runtime.guards.add(self)
        if runtime.ledger is not None:
            runtime.ledger.hold(self)

    @property
    def waits(self) -> int:
        """How many writes the guard itself keeps, in this process, until the store takes them."""
        return 0

    def call(self, operation: Operation, invoke: Invoke, *, inline: bool = False) -> Any:
        """
        Make one synchronous call.

        Args:
            operation: What the caller asked.
            invoke: Calls the store with the (redacted) arguments.
            inline: Stay on this thread, without a deadline: for clients bound to it.

        Returns:
            The store's own object, or the method's neutral value.

        Raises:
            ScopeError: The caller names nobody, everybody or somebody else.
            RedactionError, StoreUnavailableError, DeadlineExceededError: Classes that fail closed.
            Exception: Whatever else the store raised, unchanged.
        """
        call = self._admit(operation)
        if call.refusal is not None:
            return self._refused(call, call.refusal)
        try:
            result = self._reach(call, invoke, inline=inline)
        except BaseException as exc:
            if self._gives_way(call, exc):
                return call.answer
            if isinstance(exc, Expired):
                raise DeadlineExceededError(self.store, call.deadline_s) from None
            raise
        return self._answered(call, result)

    async def acall(self, operation: Operation, invoke: AsyncInvoke) -> Any:
        """Make one asynchronous call: as `call`, but its deadline cancels it."""
        call = self._admit(operation)
        if call.refusal is not None:
            return await self._arefused(call, call.refusal)
        try:
            result = await self._areach(call, invoke)
        except BaseException as exc:
            if await self._agives_way(call, exc):
                return call.answer
            if isinstance(exc, Expired):
                raise DeadlineExceededError(self.store, call.deadline_s) from None
            raise
        return self._answered(call, result)

    # -- before the store ------------------------------------------------------------------------

    def _admit(self, operation: Operation) -> Call:
        call, runtime = self._begun(operation), self.runtime
        # Asked here, since most calls have nothing to do with any of the three.
        enforced = runtime.policy.enforce_tenancy
        if enforced or runtime.ledger is not None or operation.method.scope is not nobody:
            self._vet(call)
        if self._confidentiality.apply(call):
            self._take_place(call)
        return call

    def _vet(self, call: Call) -> None:
        """Find out whose memory it is about, and bar it where it must not go on."""
        try:
            self._tenancy.name_owner(call)
            self._tenancy.confine(call)
            if self.runtime.ledger is not None:
                self.runtime.ledger.admit(call.method.op_class)
        except BARRED as exc:
            self._confidentiality.begin(call)  # for the labels of the event
            self._report.ended(call, Status.DENIED, exc)
            raise

    def _begun(self, operation: Operation) -> Call:
        runtime, method = self.runtime, operation.method
        try:
            trace = runtime.tracing.capture()
            context = around(trace)
        except Exception as exc:  # noqa: BLE001 - the host's id generator or span may be broken
            runtime.faults.note("guard.trace", exc)
            trace, context = UNTRACED, None
        deadline_s = self._places[method.op_class].deadline_s
        now_ns, now = runtime.wall_ns(), runtime.clock()
        arguments, scope = operation.arguments, current()
        call = Call(method, arguments, scope, trace, context, now_ns, now, deadline_s)
        if operation.behind:
            call.behind = True
        if (outer := outer_call()) is not None:
            call.scope = call.scope.filled(outer.scope)
            call.nested, call.private, call.sheltered = True, outer.private, outer.method.shields
        return call

    def _take_place(self, call: Call) -> None:
        place = self._places[call.method.op_class]
        call.admission = place.breaker.admit()
        if not call.admission.granted:
            reason = "breaker open"
        elif not place.bulkhead.enter():
            place.breaker.release(call.admission)
            reason = "bulkhead full"
        else:
            return
        call.status = Status.REJECTED
        call.refusal = StoreUnavailableError(self.store, reason)

    def _refused(self, call: Call, refusal: Exception) -> Any:
        call.neutral = self._makes_neutral(call)
        self._keep(call, call.status)
        self._report.ended(call, call.status, refusal)
        if call.neutral:
            return call.answer
        raise refusal

    async def _arefused(self, call: Call, refusal: Exception) -> Any:
        call.neutral = self._makes_neutral(call)
        try:
            await self._akeep(call, call.status)
        finally:
            self._report.ended(call, call.status, refusal)
        if call.neutral:
            return call.answer
        raise refusal

    # -- in the store ----------------------------------------------------------------------------

    def _reach(self, call: Call, invoke: Invoke, *, inline: bool) -> Any:
        if inline or call.method.inline or not call.deadline_s:
            return self._work(call, invoke)
        work, late = partial(self._work, call, invoke), partial(self._note_late, call)
        return self.runtime.workers.run(work, call.deadline_s, late)

    def _work(self, call: Call, invoke: Invoke) -> Any:
        call.holds = [self._left]
        try:
            if self._serialise is None:
                return self._within(call, invoke)
            with self._serialise:
                return self._within(call, invoke)
        finally:
            call.let_go()

    def _within(self, call: Call, invoke: Invoke) -> Any:
        marks = call.enter()
        try:
            call.reached_store_at = self.runtime.clock()
            pauses_s = self._places[call.method.op_class].pauses_s
            result = self._attempts(call, invoke, pauses_s) if pauses_s else invoke(call.arguments)
            call.landed = True
            return result
        finally:
            call.leave(marks)

    def _left(self, call: Call) -> None:
        call.ended = True
        self._places[call.method.op_class].bulkhead.leave()

    def _attempts(self, call: Call, invoke: Invoke, pauses_s: tuple[float, ...]) -> Any:
        for pause_s in pauses_s:
            try:
                return invoke(call.arguments)
            except Exception as exc:
                if not self._is_failure(exc):
                    raise
                time.sleep(pause_s)
                # Not again behind the back of a caller that has been told it failed.
                if call.late:
                    raise
        return invoke(call.arguments)

    async def _areach(self, call: Call, invoke: AsyncInvoke) -> Any:
        if self._blocks:
            return await self._areach_blocking(call, invoke)
        call.holds = [self._aleft]
        timeout = asyncio.timeout(call.deadline_s or None)
        marks = call.enter()
        try:
            async with timeout:
                return await self._aattempts(call, invoke)
        except Exception as exc:
            # A client may turn the cancellation into an error of its own: it is still our deadline.
            if timeout.expired():
                raise Expired from exc
            raise
        finally:
            call.leave(marks)
            call.let_go()

    async def _areach_blocking(self, call: Call, invoke: AsyncInvoke) -> Any:
        def driving(given: Arguments) -> Any:
            return driven(invoke(given).__await__())

        work, late = partial(self._work, call, driving), partial(self._note_late, call)
        return await self.runtime.workers.acall(work, call.deadline_s or None, late)

    def _aleft(self, call: Call) -> None:
        # Threads that the store started may be at work after their caller has gone.
        late = call.late
        self._left(call)
        if late:
            self._note_late(call)

    async def _aattempts(self, call: Call, invoke: AsyncInvoke) -> Any:
        call.reached_store_at = self.runtime.clock()
        for pause_s in self._places[call.method.op_class].pauses_s:
            try:
                return await invoke(call.arguments)
            except Exception as exc:
                if not self._is_failure(exc):
                    raise
            await asyncio.sleep(pause_s)
        return await invoke(call.arguments)

    def _note_late(self, _call: Call) -> None:
        with self._late:
            self.late_results += 1

    # -- after the store -------------------------------------------------------------------------

    def _answered(self, call: Call, result: Any) -> Any:
        self._settle(call, failed=False)
        status = self._summarise(call, result)
        if self.runtime.policy.enforce_tenancy:
            try:
                result = self._tenancy.narrow(call, result)
            except ScopeError as exc:
                self._report.ended(call, Status.ERROR, exc)
                raise
        self._report.ended(call, status)
        return result

    def _summarise(self, call: Call, result: Any) -> Status:
        try:
            call.summary = call.method.summary(result, call.arguments)
            empty = call.summary.hits == 0 and self._places[call.method.op_class].recalls
        except Exception as exc:  # noqa: BLE001 - reading a result fails open
            self.runtime.faults.note("guard.summary", exc)
            call.summary = Summary()
            return Status.OK
        return Status.EMPTY if empty else Status.OK

    def _gives_way(self, call: Call, exc: BaseException) -> bool:
        """Classify *exc*, report it, and tell whether the caller gets ``call.answer`` instead."""
        status = self._classified(call, exc)
        self._keep(call, status)
        self._report.ended(call, status, exc)
        return call.neutral

    async def _agives_way(self, call: Call, exc: BaseException) -> bool:
        status = self._classified(call, exc)
        try:
            await self._akeep(call, status)
        finally:
            self._report.ended(call, status, exc)
        return call.neutral

    def _classified(self, call: Call, exc: BaseException) -> Status:
        call.late = call.is_at_work or isinstance(exc, Expired)
        failure = self._is_failure(exc) or isinstance(exc, call.failed_below)
        if failure and call.sheltered and (outer := outer_call()) is not None:
            outer.failed_below = (*outer.failed_below, type(exc))
        if failure:
            self._settle(call, failed=True)
        else:
            self.breakers[call.method.op_class].release(call.admission)
        # An item of a lazy iterable, redacted as the store pulled it, may turn out not to be.
        refused = isinstance(exc, RedactionError)
        call.neutral = (failure or refused) and self._makes_neutral(call)
        return status_of(exc, neutral=call.neutral)

    def _keep(self, call: Call, status: Status) -> None:
        """Do what can be done for a write that the store did not take: here, count it as lost."""
        gone = call.neutral and not call.late and status is not Status.REFUSED
        call.journal = Journalled.LOST if gone else Journalled.NO

    async def _akeep(self, call: Call, status: Status) -> None:
        self._keep(call, status)

    def _is_failure(self, exc: BaseException) -> bool:
        if isinstance(exc, (Expired, StoreUnavailableError, DeadlineExceededError)):
            return True  # the latter two come from a guard below this one
        if not isinstance(exc, (Exception, SystemExit)):
            return False
        try:
            return self._failed(exc)
        except Exception as ours:  # noqa: BLE001 - classifying fails towards the caller seeing it
            self.runtime.faults.note("guard.classify", ours)
            return False

    def _makes_neutral(self, call: Call) -> bool:
        method = call.method
        if method.neutral is None or method.op_class not in FAILS_OPEN:
            return False
        if call.sheltered:
            return False  # the outer call would take the neutral value for success
        try:
            call.answer = method.neutral(call.arguments)
        except Exception as exc:  # noqa: BLE001 - then the caller sees the store's error
            self.runtime.faults.note("guard.neutral", exc)
            return False
        return True

    def _settle(self, call: Call, *, failed: bool) -> None:
        method, now = call.method, self.runtime.clock()
        place, took = self._places[method.op_class], now - (call.reached_store_at or call.started)
        slow = not (failed or method.inline) and 0 < place.slow_s <= took
        place.breaker.settle(call.admission, failed=failed, slow=slow, now=now)
