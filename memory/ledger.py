"""
How much a call cares whether the audit trail has it: not at all, or before it returns, or before.

``fail_open``: the agent never waits for the trail. ``durable``: a call returns when its event is on
a disk, in the database or in its spool. ``strict``: besides, an operation is refused, and the store
not asked, while neither takes anything. Both can be limited to classes of operations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol

from ..telemetry.drain import Drain
from ..telemetry.event import OperationClass
from ..telemetry.faults import Faults
from .call import outer_call
from .errors import AuditUnavailableError
from .operation import Operation
from .policy import CLASSES

if TYPE_CHECKING:
    from .guard import Guard

PATIENCE_S = 5.0
"""Seconds that a call waits for its event to be on a disk, before it returns without."""


@dataclass(frozen=True, slots=True)
class AuditMode:
    """
    What `MNEMOSCOPE_AUDIT_MODE` asks for.

    Attributes:
        durable: Classes whose calls wait for their event to be on a disk.
        strict: Those of them that are refused where it could not be.
    """

    durable: frozenset[OperationClass] = frozenset()
    strict: frozenset[OperationClass] = frozenset()


def parse_mode(text: str) -> AuditMode:
    """
    Return the mode that *text* names: ``strict``, say, or ``strict:forget,remember``.

    Raises:
        ValueError: It names none.
    """
    name, colon, listed = text.strip().lower().partition(":")
    names = [each.strip() for each in listed.split(",")] if colon else [*CLASSES]
    if name not in {"fail_open", "durable", "strict"} or not set(names) <= set(CLASSES):
        raise ValueError(
            "expected fail_open, durable or strict, the latter two perhaps followed by a colon "
            f"and some of {', '.join(sorted(CLASSES))}"
        )
    chosen = frozenset(map(OperationClass, names))
    if name == "fail_open":
        return AuditMode()
    return AuditMode(chosen, chosen if name == "strict" else frozenset())


class Trail(Protocol):
    """The audit trail, as the guard knows it."""

    name: str

    def accepts(self) -> bool:
        """Return whether an event would be on a disk when it is written now. Does not wait."""
        ...


class Ledger:
    """
    Holds calls to the audit trail's word.

    Args:
        mode: For which classes.
        trail: The audit sink.
        drain: What it is behind.
        faults: Where calls that could not wait longer are noted.
    """

    def __init__(self, mode: AuditMode, trail: Trail, drain: Drain, faults: Faults) -> None:
        self._mode = mode
        self._trail = trail
        self._drain = drain
        self._faults = faults

    def admit(self, op_class: OperationClass) -> None:
        """
        Let an operation pass.

        Raises:
            AuditUnavailableError: It must be audited, and cannot be.
        """
        if op_class in self._mode.strict and not self._trail.accepts():
            raise AuditUnavailableError(op_class.value)

    def hold(self, guard: Guard) -> None:
        """Have every call of *guard* wait for its event, whatever its end."""
        # On the instance: a guard without a ledger pays nothing for this.
        vars(guard).update(call=self._held(guard.call), acall=self._aheld(guard.acall))

    def _held(self, invoke: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(invoke)
        def call(operation: Operation, *args: Any, **kwargs: Any) -> Any:
            try:
                result = invoke(operation, *args, **kwargs)
            except AuditUnavailableError:
                raise  # there is nothing to wait for
            except Exception:
                self.settle(operation.method.op_class)
                raise
            self.settle(operation.method.op_class)
            return result

        return call

    def _aheld(self, invoke: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @wraps(invoke)
        async def acall(operation: Operation, *args: Any, **kwargs: Any) -> Any:
            try:
                result = await invoke(operation, *args, **kwargs)
            except AuditUnavailableError:
                raise  # there is nothing to wait for
            except Exception:
                await self.asettle(operation.method.op_class)
                raise
            await self.asettle(operation.method.op_class)
            return result

        return acall

    def settle(self, op_class: OperationClass) -> None:
        """Wait until what was emitted so far is on a disk, where *op_class* is to wait for it."""
        # What is nested waits with the call that it is inside of.
        if op_class in self._mode.durable and outer_call() is None:
            self._wait()

    async def asettle(self, op_class: OperationClass) -> None:
        """Wait as `settle` does, on another thread."""
        import asyncio  # noqa: PLC0415 - a tenth of the time to configure a scope

        if op_class in self._mode.durable and outer_call() is None:
            await asyncio.to_thread(self._wait)

    def _wait(self) -> None:
        if not self._drain.settle(self._trail.name, PATIENCE_S):
            self._faults.count("ledger.settle")
