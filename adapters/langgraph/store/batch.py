"""
Calls of ``batch``: the store is asked once, and each operation in it has an event.

The call as a whole is of the strictest class of its operations, so one deletion among reads makes
it fail closed: half of a batch cannot be answered. Each operation has an event of its own, with its
own class and result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from ....memory.guard.call import Call
from ....memory.guard.operation import Arguments, Method, Summary
from ....memory.guard.steps.report import Parts
from ....telemetry.event.event import OperationClass, Status

Rows: TypeAlias = Callable[[Any], Method | None]
"""Returns the row of an operation, or None for what is no operation."""


def batch_parts(row: Rows) -> Parts:
    """Return what splits a call of ``batch`` into its operations, whose rows *row* finds."""

    def parts(call: Call) -> Iterable[Call]:
        ops: Sequence[Any] | None = call.arguments.get("ops")
        return split(call, ops) if ops else ()

    def split(call: Call, ops: Sequence[Any]) -> Iterator[Call]:
        normal = call.status.is_normal and call.result is not None  # rules are asked before
        results: Any = call.result if normal else [None] * len(ops)
        rows = ((row(op), op, result) for op, result in zip(ops, results, strict=True))
        known = ((method, op, result) for method, op, result in rows if method is not None)
        for method, op, result in known:
            arguments: Arguments = op._asdict()
            summary = method.summary(result, arguments) if normal else Summary()
            # The call itself goes on as it is: it was admitted, timed and redacted as one.
            part = call.but(method=method, arguments=arguments, summary=summary)
            part.status = _status_of(part, call.status)
            yield part

    return parts


def _status_of(part: Call, status: Status) -> Status:
    if not status.is_normal:
        return status
    empty = part.method.op_class is OperationClass.RECALL and part.summary.hits == 0
    return Status.EMPTY if empty else Status.OK
