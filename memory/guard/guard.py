"""
The guard that every call to a wrapped store goes through.

A guard is an ordered tuple of steps, put together once, when a client is wrapped (see `factory`).
Before the store is asked each step may refuse the call; afterwards each looks at the outcome, in
reverse order. What only observes fails open: an error of ours in it is counted and the call goes
on. What redacts or confines fails closed: the store is not asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ...telemetry.event.event import OperationClass
from ...telemetry.event.trace import TraceRef, Tracing, around
from ...telemetry.process.faults import Faults
from ..context import current
from ..database import Database
from ..errors import DeadlineExceededError
from ..limits.class_limits import ClassLimits
from ..limits.workers import Expired
from .call import Below, Call, Plan, innermost, nothing_below, outer_call
from .deadline import Deadline
from .nesting import nest
from .operation import Method, Operation
from .plan import plan_for
from .step import AsyncInvoke, CallKeeper, Invoke, Step, WaitingWrites

UNTRACED = TraceRef(1, 1, sampled=False)
"""Stands in where the host's tracing fails."""

_MOST_PLANS = 1_024


class Guard:
    """
    The chokepoint of one wrapped store instance.

    Args:
        store: Its name in events and metrics.
        steps: What is done before and after the store, in order.
        limits: Breaker, bulkhead and deadline of each class of operations.
        tracing: Makes the ids of each call's span.
        faults: Where errors of our own are noted.
        clock: Monotonic seconds.
        wall_ns: Nanoseconds since 1970 UTC.
        database: What the store writes to. None: that cannot be told for certain.
        text_to_embed: Returns a redacted text as it is to be densely encoded.
        public: What the user says is nobody's personal data: all of it, or these parts.
        below: Returns the guards that the store does its own work in.

    Attributes:
        store: As given, as are `steps`, `deadline`, `limits`, `clock`, `database`, `public` and
            `text_to_embed`.
    """

    def __init__(
        self,
        store: str,
        *,
        steps: Sequence[Step],
        deadline: Deadline,
        limits: Mapping[OperationClass, ClassLimits],
        tracing: Tracing,
        faults: Faults,
        clock: Callable[[], float],
        wall_ns: Callable[[], int],
        database: Database | None = None,
        text_to_embed: Callable[[str], str] = str,
        public: bool | frozenset[str] = False,
        below: Below = nothing_below,
    ) -> None:
        self.store = store
        self.text_to_embed = text_to_embed
        self.database = database
        self.public = public
        self.steps = tuple(steps)
        self.deadline = deadline
        self.limits = limits
        self._tracing = tracing
        self._faults = faults
        self.clock = clock
        self._wall_ns = wall_ns
        self._below = below
        self._plans: dict[Method, Plan] = {}
        for place, step in enumerate(self.steps, 1):
            if isinstance(step, CallKeeper):
                step.lead(self.steps[place:])

    @property
    def faults(self) -> Faults:
        """Where errors of our own are noted."""
        return self._faults

    @property
    def waiting(self) -> tuple[WaitingWrites, ...]:
        """The steps that keep writes in this process until the store takes them."""
        return tuple(step for step in self.steps if isinstance(step, WaitingWrites))

    @property
    def waits(self) -> int:
        """Writes that a step keeps in this process until the store takes them."""
        return sum(step.waits for step in self.waiting)

    def call(self, operation: Operation, invoke: Invoke, *, inline: bool = False) -> Any:
        """
        Make one synchronous call, or one whose answer turns out to be awaitable.

        Whether a method is synchronous cannot always be told from it: a decorated one may answer
        with a coroutine. That is not the result yet, so the call goes on in it, with a deadline of
        its own, and its event is made when that ends.

        Args:
            operation: What the caller asked.
            invoke: Calls the store with the (redacted) arguments.
            inline: Stay on this thread, without a deadline: for clients bound to it.

        Returns:
            The store's own object, or the method's neutral value; a coroutine that returns it,
            where the store's answer can be awaited.

        Raises:
            ScopeError: The caller names nobody, everybody or somebody else.
            RedactionError, StoreUnavailableError, DeadlineExceededError: Classes that fail closed.
            Exception: Whatever else the store raised, unchanged.
        """
        call = self.begin(operation)
        if call.error is None:
            try:
                call.result = self.deadline.run(call, invoke, inline)
            except BaseException as exc:  # noqa: BLE001 - raised by `end`, unless a step decides
                call.error = exc
            else:
                try:
                    if _has_await(call.result.__class__):
                        return self._awaited(call, call.result)
                except TypeError:  # a class that has no hash
                    if hasattr(call.result.__class__, "__await__"):
                        return self._awaited(call, call.result)
        return self.end(call)

    async def acall(self, operation: Operation, invoke: AsyncInvoke) -> Any:
        """Make one asynchronous call: as `call`, but its deadline cancels it."""
        call = await self.abegin(operation)
        del operation  # the arguments as they were given, which the store is not to hold up
        if call.error is None:
            try:
                call.result = await self.deadline.arun(call, invoke)
            except BaseException as exc:  # noqa: BLE001 - raised by `aend`, unless a step decides
                call.error = exc
        return await self.aend(call)

    def begin(self, operation: Operation) -> Call:
        """Return *operation* as a call, ready for the store or with the error that refuses it."""
        call = self._made(operation)
        try:
            for before in call.plan.before:
                before(call)
        except BaseException as exc:  # noqa: BLE001 - raised by `end`, unless a step decides
            call.error = exc
        return call

    async def abegin(self, operation: Operation) -> Call:
        """Return *operation* as an asynchronous call: as `begin`."""
        call = self._made(operation)
        try:
            for before in call.plan.abefore:
                if (waits := before(call)) is not None:
                    await waits
        except BaseException as exc:  # noqa: BLE001 - raised by `aend`, unless a step decides
            call.error = exc
        return call

    def end(self, call: Call) -> Any:
        """
        Run the steps behind the store and return the call's result.

        Raises:
            BaseException: The call's error, unless it has a neutral result.
        """
        for after in call.plan.after:
            after(call)
        return call.result if call.error is None else self._unanswered(call)

    async def aend(self, call: Call) -> Any:
        """Run the steps behind the store and return the result of an asynchronous call."""
        for after in call.plan.aafter:
            try:
                if (waits := after(call)) is not None:
                    await waits
            except BaseException as exc:  # noqa: BLE001 - a cancellation: the other steps still run
                call.error, call.neutral = exc, False
        return call.result if call.error is None else self._unanswered(call)

    async def _awaited(self, call: Call, answer: Awaitable[Any]) -> Any:
        call.result, call.landed, call.ended = None, False, False
        timeout = asyncio.timeout(call.limits.deadline_s or None)
        try:
            marks = call.enter()
            try:
                async with timeout:
                    call.result = await answer
                call.landed = True
            finally:
                call.leave(marks)
                call.ended = True
        except Exception as exc:  # noqa: BLE001 - raised by `aend`, unless a step decides
            # A client may turn the cancellation into an error of its own: it is still our deadline.
            call.error = Expired() if timeout.expired() else exc
        except BaseException as exc:  # noqa: BLE001 - as above
            call.error = exc
        return await self.aend(call)

    def _unanswered(self, call: Call) -> Any:
        """Return the neutral result, or raise the call's error."""
        # Not kept: an exception that holds a frame that holds the call is a cycle.
        error, call.error = call.error, None
        try:
            if call.neutral or error is None:
                return call.result
            if isinstance(error, Expired):
                raise DeadlineExceededError(self.store, call.limits.deadline_s) from None
            raise error
        finally:
            del error

    def _made(self, operation: Operation) -> Call:
        method, arguments = operation.method, operation.arguments
        try:
            plan = self._plans[method]
        except KeyError:
            plan = self._planned(method)
        try:
            trace = self._tracing.capture()
            context = around(trace)
        except Exception as exc:  # noqa: BLE001 - the host's id generator or span may be broken
            self._faults.note("guard.trace", exc)
            trace, context = UNTRACED, None
        now_ns = self._wall_ns()
        call = Call(method, arguments, current(), trace, context, now_ns, self.clock(), plan)
        if operation.journal:
            call.journal = operation.journal
        if innermost() is not None and (outer := outer_call()) is not None:
            nest(call, outer)
        return call

    def _planned(self, method: Method) -> Plan:
        if len(self._plans) >= _MOST_PLANS:
            self._plans.clear()  # methods that are made anew for each call
        # The faults are the scope's, as good as any other part of it to know it by.
        plan = plan_for(
            method,
            self.steps,
            self.limits[method.op_class],
            home=self._faults,
            guard=self,
            below=self._below,
        )
        self._plans[method] = plan
        return plan


@lru_cache(maxsize=256)
def _has_await(kind: type) -> bool:
    # Classes of pydantic take microseconds to say that they lack an attribute.
    return hasattr(kind, "__await__")
