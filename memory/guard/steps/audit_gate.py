"""
The steps that make calls depend on the audit trail.

Audit durability: ``fail_open``, ``durable`` (wait for the write) or ``strict`` (refuse the call if
auditing is impossible). The latter two can be limited to classes of operations.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ....telemetry.delivery.drain import Drain
from ....telemetry.event.event import OperationClass
from ....telemetry.process.faults import Faults
from ...errors import AuditUnavailableError
from ..call import Call
from ..operation import Method
from ..step import NOTHING, Faces

PATIENCE_S = 5.0
"""Seconds that a call waits for its event to be on a disk, before it returns without."""


@runtime_checkable
class AuditTrail(Protocol):
    """The part of the audit sink that the steps use, or of the files from which it is fed."""

    name: str

    def accepts(self) -> bool:
        """Return whether an event would be on a disk when it is written now. Does not wait."""
        ...

    def probe(self) -> None:
        """Find out whether it takes events, before the first one."""
        ...


class RequireAudit:
    """Refuses calls while neither the audit database nor its spool takes anything."""

    def __init__(self, classes: frozenset[OperationClass], trail: AuditTrail) -> None:
        self._classes = classes
        self._trail = trail

    def faces(self, method: Method) -> Faces:
        """Return the face before the store, for the classes that are strict."""
        return Faces(before=self._require) if method.op_class in self._classes else NOTHING

    def _require(self, call: Call) -> None:
        if not self._trail.accepts():
            raise AuditUnavailableError(call.method.op_class.value)


class AwaitAudit:
    """
    Waits until a call's event is on a disk, before the call returns.

    Args:
        faults: Where calls that could not wait longer are counted.
    """

    def __init__(
        self,
        classes: frozenset[OperationClass],
        trail: AuditTrail,
        *,
        drain: Drain,
        faults: Faults,
    ) -> None:
        self._classes = classes
        self._trail = trail
        self._drain = drain
        self._faults = faults

    def faces(self, method: Method) -> Faces:
        """Return the face after the store, for the classes that are durable."""
        if method.op_class not in self._classes:
            return NOTHING
        return Faces(after=self._settle, aafter=self._asettle)

    def _settle(self, call: Call) -> None:
        if self._waits(call):
            self.wait()
        elif not call.covered:
            self._drain.numbers.let_go()

    async def _asettle(self, call: Call) -> None:
        import asyncio  # noqa: PLC0415 - a tenth of the time to configure a scope

        if self._waits(call):
            await asyncio.to_thread(self.wait)
        elif not call.covered:
            self._drain.numbers.let_go()

    def _waits(self, call: Call) -> bool:
        # A call that was refused since nothing takes its event has nothing to wait for; what ends
        # the process does not wait.
        error = call.error
        if isinstance(error, AuditUnavailableError) or self._is_awaited(call):
            return False
        return error is None or isinstance(error, Exception)

    def _is_awaited(self, call: Call) -> bool:
        """Tell whether the call that *call* is a part of waits for both, as it ends."""
        outer = call.outer
        return call.covered and outer is not None and outer.method.op_class in self._classes

    def wait(self) -> None:
        """Wait until everything that was emitted so far is on a disk, `PATIENCE_S` at most."""
        if not self._drain.settle(self._trail.name, PATIENCE_S):
            self._drain.numbers.let_go()
            self._faults.count("audit_gate.settle")
