"""Events of model calls that a framework tells of as they begin and end."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...memory import api
from ...memory.context import current
from ...memory.guard.call import outer_call
from ...memory.guard.labels import with_names

End = Callable[[api.Usage, str | None], None]
"""Takes what a call used, and the name of the error that it ended with. Never raises."""


def begin_model_call(by: api.ModelAccounting, store: str, model: str | None) -> End:
    """
    Return what ends a call that begins now, here.

    Args:
        by: The accounting of the scope that it is counted for.
        store: What stands for a store in its event: ``crewai.model``.
        model: What the usage is of that names no model.
    """
    started, trace, scope, nested = by.clock(), by.tracing.capture(), current(), outer_call()

    def end(usage: api.Usage, error: str | None) -> None:
        try:
            if not by.is_closed:
                tell(usage, error)
        except Exception as exc:  # noqa: BLE001 - observing fails open
            by.faults.note(store, exc)

    def tell(usage: api.Usage, error: str | None) -> None:
        duration_s, shown = max(0.0, by.clock() - started), by.labels.redacted(scope)
        usage = msgspec.structs.replace(usage, model=usage.model or model or "unknown")
        if usage.reported:  # else a cost of 0 would be a statement
            usage = msgspec.structs.replace(usage, cost_usd=by.prices.cost_usd(usage))
        by.charge(scope, usage, failed=error is not None)
        event = api.Event(
            writer_id=by.drain.writer_id,
            writer_seq=by.drain.next_seq(),
            started_ns=by.wall_ns() - int(duration_s * 1e9),
            duration_s=duration_s,
            operation="chat",
            op_class=api.OperationClass.MODEL,
            store=store,
            method="chat",
            status=api.Status.ERROR if error else api.Status.OK,
            error=error,
            trace=trace,
            nested=nested is not None,
            subject=by.labels.subject(scope),
            **{n: getattr(shown, n) for n in ("tenant", "agent", "feature", "run", "purpose")},
            parts=(with_names(usage, by.labels.namer(scope)),),
        )
        by.drain.emit(event)

    return end
