"""
One call of ``batch``, many operations: the store is asked once, and each operation is told of.

The call as a whole is of the strictest class of its operations, so one deletion among reads makes
it fail closed: half of a batch cannot be answered. Each operation has an event of its own, with its
own class and result; all but the first are marked as nested, since the first one counts the wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from ..memory.call import Call
from ..memory.journal.journalled import JournalledGuard
from ..memory.journal.writes import Writes
from ..memory.operation import Arguments, Method, Summary
from ..memory.report import Reporter
from ..memory.runtime import Runtime
from ..telemetry.event import OperationClass, Status

Rows: TypeAlias = Callable[[Any], Method | None]
"""The row of an operation, or None for what is no operation."""


class BatchGuard(JournalledGuard):
    """
    A guard whose calls may hold several operations.

    Args:
        row: Finds the row of each of them.
        writes: What is to be known of its writes. None: they are not kept.
    """

    def __init__(
        self,
        store: str,
        runtime: Runtime,
        *,
        failed: Callable[[BaseException], bool],
        row: Rows,
        writes: Writes | None = None,
    ) -> None:
        super().__init__(store, runtime, failed=failed, writes=writes)
        self._report = _PartReporter(store, runtime, row)

    def _answered(self, call: Call, result: Any) -> Any:
        call.answer = result  # for the reporter, which splits it
        return super()._answered(call, result)


class _PartReporter(Reporter):
    def __init__(self, store: str, runtime: Runtime, row: Rows) -> None:
        super().__init__(store, runtime)
        self._row = row

    def ended(self, call: Call, status: Status, exc: BaseException | None = None) -> None:
        """Report *call*, or each operation in it."""
        try:
            parts = list(self._parts(call, status))
        except Exception as ours:  # noqa: BLE001 - observing fails open
            self._runtime.faults.note("guard.report", ours)
            parts = []
        if not parts:
            super().ended(call, status, exc)
        for part in parts:
            super().ended(part, _status_of(part, status), exc)

    def _parts(self, call: Call, status: Status) -> Iterator[Call]:
        ops: Sequence[Any] = call.arguments.get("ops", ())
        if not ops:
            return
        results = call.answer if status.is_normal else [None] * len(ops)
        rows = ((self._row(op), op, result) for op, result in zip(ops, results, strict=True))
        told = ((row, op, result) for row, op, result in rows if row is not None)
        for index, (row, op, result) in enumerate(told):
            arguments: Arguments = op._asdict()
            summary = row.summary(result, arguments) if status.is_normal else Summary()
            part = call.but(method=row, arguments=arguments, summary=summary)
            yield self._beside(part) if index else part

    def _beside(self, part: Call) -> Call:
        # A span and a count of its own; the wait and the redactions are the first one's.
        scope = part.scope
        known = (*scope.known, scope.customer) if scope.customer else scope.known
        return part.but(
            nested=True,
            trace=self._runtime.tracing.capture(),
            redaction=part.redaction
            and self._runtime.redactor.begin(tenant=scope.tenant, known=known),
        )


def _status_of(part: Call, status: Status) -> Status:
    if not status.is_normal:
        return status
    empty = part.method.op_class is OperationClass.RECALL and part.summary.hits == 0
    return Status.EMPTY if empty else Status.OK
