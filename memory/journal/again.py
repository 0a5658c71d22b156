"""A kept write as a call of its own: below the one that asked for it, and for the same people."""

from __future__ import annotations

from dataclasses import replace

from ...telemetry.event import OperationClass
from ...telemetry.trace import TraceRef, around
from ..call import Call
from ..context import NOBODY, Scope
from ..operation import Arguments, Method
from ..runtime import Runtime
from .records import Write
from .writes import Writes

_UNREAD = Method(name="unknown", operation="update_memory", op_class=OperationClass.REMEMBER)
"""Stands in where a record cannot be read."""


class Again:
    """
    Makes calls of kept writes.

    Args:
        runtime: Clocks, tracing, redactor.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def unread(self) -> Call:
        """Return what stands for a write that cannot be read."""
        return self._made(_UNREAD, {}, NOBODY, self._runtime.tracing.capture())

    def call(self, writes: Writes, write: Write) -> Call:
        """
        Return *write* as a call.

        Raises:
            ValueError: It holds something that is not known any more.
        """
        arguments: Arguments = writes.values.value(write.arguments)
        method = writes.row(write.method, arguments)
        scope = _scope(write).filled(self._named(method, arguments))
        trace = self.below(TraceRef(write.trace_id, write.span_id, sampled=write.sampled))
        return self._made(method, arguments, scope, trace)

    def below(self, parent: TraceRef) -> TraceRef:
        """Return the ids of a new span below *parent*."""
        return replace(
            self._runtime.tracing.capture(),
            trace_id=parent.trace_id,
            parent_span_id=parent.span_id,
            sampled=parent.sampled,
        )

    def _made(self, method: Method, arguments: Arguments, scope: Scope, trace: TraceRef) -> Call:
        runtime = self._runtime
        call = Call(
            method,
            arguments,
            scope,
            trace,
            around(trace),
            runtime.wall_ns(),
            runtime.clock(),
            runtime.policy.deadline_s(method.op_class),
        )
        call.private = call.redacted = True
        call.redaction = runtime.redactor.begin(tenant=scope.tenant, known=scope.identifiers)
        return call

    def _named(self, method: Method, arguments: Arguments) -> Scope:
        try:
            return method.scope(arguments)
        except Exception as exc:  # noqa: BLE001 - describing a call fails open
            self._runtime.faults.note("guard.scope", exc)
            return NOBODY


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
