"""A model call that was counted goes to the budgets, and what it crossed to the sinks."""

from __future__ import annotations

from ..telemetry.crossing import Crossing, Level
from ..telemetry.event import Event, OperationClass, Status
from ..telemetry.usage import Usage
from .context import Scope
from .runtime import Runtime

STORE = "budget"
"""What stands for a store in events of budgets."""


def spent(runtime: Runtime, scope: Scope, usage: Usage) -> None:
    """Count what a model call that ended has used. Never raises: the run goes on."""
    try:
        for crossing in runtime.budgets.add(scope, usage):
            runtime.drain.emit(_event(runtime, crossing))
    except Exception as exc:  # noqa: BLE001 - observing fails open
        runtime.faults.note("budgets.add", exc)


def _event(runtime: Runtime, crossing: Crossing) -> Event:
    exceeded = crossing.level is Level.EXCEEDED
    return Event(
        writer_id=runtime.drain.writer_id,
        writer_seq=runtime.drain.next_seq(),
        started_ns=runtime.wall_ns(),
        duration_s=0.0,
        operation="budget_exceeded" if exceeded else "budget_alert",
        op_class=OperationClass.MODEL,
        store=STORE,
        method=crossing.budget,
        status=Status.OK,
        trace=runtime.tracing.capture(),
        crossing=crossing,
    )
