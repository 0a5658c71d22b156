"""Calls that replay a journalled write, with the scope and below the span of the first call."""

from __future__ import annotations

from collections.abc import Sequence

from ...telemetry.event.event import OperationClass
from ...telemetry.event.trace import TraceRef, around
from ..context import EMPTY_SCOPE, Scope
from ..guard.call import Call, Plan
from ..guard.operation import Arguments, Method
from ..guard.plan import plan_for
from ..guard.step import Faces, Step
from ..guard.steps.admit import Admit
from ..guard.steps.classify import Classify
from ..guard.steps.making import GuardParts
from ..guard.writes import JournalledWrites
from ..limits.breaker import Blame
from .codec import ArgumentCodec
from .records import Write

_UNREAD = Method(name="unknown", operation="update_memory", op_class=OperationClass.REMEMBER)
"""Stands in where a record cannot be read."""


class ReplayedCalls:
    """
    Makes calls of kept writes.

    Attributes:
        codec: Reads and writes their arguments.
        steps: The steps of the guard that each call goes through: those behind the journal's, since
            it had passed the others when it was kept.
    """

    def __init__(self, parts: GuardParts, codec: ArgumentCodec) -> None:
        self.codec = codec
        self._redactor = parts.redactor
        self._limits = parts.limits
        self._tracing = parts.tracing
        self._faults = parts.faults
        self._clock = parts.clock
        self._wall_ns = parts.wall_ns
        self._guards_below = parts.below
        self.steps: tuple[Step, ...] = ()

    def unread(self) -> Call:
        """Return what stands for a write that cannot be read."""
        return self._made(_UNREAD, {}, EMPTY_SCOPE, self._tracing.capture(), ())

    def call(
        self, writes: JournalledWrites, write: Write, *, may_be_at_fault: bool = False
    ) -> Call:
        """
        Return *write* as a call.

        Args:
            writes: What the adapter says of it.
            write: The write.
            may_be_at_fault: It has failed before: should it again, that says nothing of the store.

        Raises:
            ValueError: It holds something that is not known any more.
        """
        arguments: Arguments = self.codec.value(write.arguments)
        method = writes.row(write.method, arguments)
        scope = _scope(write).with_defaults(self._named(method, arguments))
        trace = self.below(TraceRef(write.trace_id, write.span_id, sampled=write.sampled))
        return self._made(method, arguments, scope, trace, self._steps(may_be_at_fault))

    def lookup(self, call: Call, arguments: Arguments) -> Call:
        """Return the call that looks whether the store has taken *call*."""
        steps = [each for each in self._steps(may_be_at_fault=True) if isinstance(each, _OURS)]
        return call.but(arguments=arguments, plan=self._plan(call.method, steps))

    def _steps(self, may_be_at_fault: bool) -> list[Step]:  # noqa: FBT001 - as it was given
        excuse = _Excuse(may_be_at_fault)
        return [
            each
            for step in self.steps
            for each in ((step, excuse) if isinstance(step, Admit) else (step,))
        ]

    def _plan(self, method: Method, steps: Sequence[Step]) -> Plan:
        limits, below = self._limits[method.op_class], self._guards_below
        return plan_for(method, steps, limits, home=self._faults, guard=None, below=below)

    def below(self, parent: TraceRef) -> TraceRef:
        """Return the ids of a new span below *parent*."""
        return self._tracing.child(parent)

    def _made(
        self,
        method: Method,
        arguments: Arguments,
        scope: Scope,
        trace: TraceRef,
        steps: Sequence[Step],
    ) -> Call:
        call = Call(
            method,
            arguments,
            scope,
            trace,
            around(trace),
            self._wall_ns(),
            self._clock(),
            self._plan(method, steps),
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


class _Excuse:
    """The step that keeps from the breaker what a write may have failed by itself by."""

    def __init__(self, has_failed: bool) -> None:  # noqa: FBT001 - all that there is
        self._has_failed = has_failed

    def faces(self, _method: Method) -> Faces:
        """Return the face after the store: behind the one that tells what a failure comes from."""
        return Faces(after=self._excuse)

    def _excuse(self, call: Call) -> None:
        if call.failed and (self._has_failed or call.blame is Blame.UNKNOWN):
            call.blame = Blame.INPUT


_OURS = (Admit, Classify, _Excuse)
"""Steps that a lookup goes through: others would take it for a write."""


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
