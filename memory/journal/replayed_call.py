"""Calls that replay a journalled write, with the scope and below the span of the first call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...telemetry.event.event import OperationClass
from ...telemetry.event.trace import TraceRef, Tracing, around
from ...telemetry.process.faults import Faults
from ..context import EMPTY_SCOPE, Scope
from ..guard.call import Below, Call, nothing_below
from ..guard.operation import Arguments, Method
from ..guard.plan import plan_without_steps
from ..limits.class_limits import ClassLimits
from ..scoped_redactor import ScopedRedactor
from .records import Write
from .writes import JournalledWrites

_UNREAD = Method(name="unknown", operation="update_memory", op_class=OperationClass.REMEMBER)
"""Stands in where a record cannot be read."""


class ReplayedCalls:
    """
    Makes calls of kept writes.

    Args:
        redactor: Begins the redaction of each call's labels.
        limits: Breaker, bulkhead and deadline of each class of operations.
        tracing: Makes the ids of each call's span.
        faults: Where failing functions of the adapter are noted.
        clock: Monotonic seconds.
        wall_ns: Nanoseconds since 1970 UTC.
    """

    def __init__(
        self,
        *,
        redactor: ScopedRedactor,
        limits: Mapping[OperationClass, ClassLimits],
        tracing: Tracing,
        faults: Faults,
        clock: Callable[[], float],
        wall_ns: Callable[[], int],
        below: Below = nothing_below,
    ) -> None:
        self._redactor = redactor
        self._limits = limits
        self._tracing = tracing
        self._faults = faults
        self._clock = clock
        self._wall_ns = wall_ns
        self._guards_below = below

    def unread(self) -> Call:
        """Return what stands for a write that cannot be read."""
        return self._made(_UNREAD, {}, EMPTY_SCOPE, self._tracing.capture())

    def call(self, writes: JournalledWrites, write: Write) -> Call:
        """
        Return *write* as a call.

        Raises:
            ValueError: It holds something that is not known any more.
        """
        arguments: Arguments = writes.values.value(write.arguments)
        method = writes.row(write.method, arguments)
        scope = _scope(write).with_defaults(self._named(method, arguments))
        trace = self.below(TraceRef(write.trace_id, write.span_id, sampled=write.sampled))
        return self._made(method, arguments, scope, trace)

    def below(self, parent: TraceRef) -> TraceRef:
        """Return the ids of a new span below *parent*."""
        return self._tracing.child(parent)

    def _made(self, method: Method, arguments: Arguments, scope: Scope, trace: TraceRef) -> Call:
        call = Call(
            method,
            arguments,
            scope,
            trace,
            around(trace),
            self._wall_ns(),
            self._clock(),
            plan_without_steps(
                self._limits[method.op_class], home=self._faults, below=self._guards_below
            ),
        )
        call.redacted = True
        call.redaction = self._redactor.begin_labels(scope)
        return call

    def _named(self, method: Method, arguments: Arguments) -> Scope:
        try:
            return method.scope(arguments)
        except Exception as exc:  # noqa: BLE001 - describing a call fails open
            self._faults.note("guard.scope", exc)
            return EMPTY_SCOPE


def _scope(write: Write) -> Scope:
    labels = write.labels
    return Scope(
        customer=write.customer,
        tenant=labels.get("tenant"),
        agent=labels.get("agent"),
        feature=labels.get("feature"),
        run=labels.get("run"),
        purpose=labels.get("purpose"),
    )
