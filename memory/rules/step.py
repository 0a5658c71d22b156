"""The step that asks the rules before a memory operation, and has them see what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...telemetry.event.event import OperationClass, Status
from ...telemetry.event.spared import Spared
from ...telemetry.process.faults import Faults
from ..errors import RuleError
from ..guard.call import Call
from ..guard.operation import Method
from ..guard.step import NOTHING, Face, Faces
from .slots import SPARE

if TYPE_CHECKING:
    from ..guard.steps.report import Parts
    from .capabilities import Seat
    from .memory_labels import MemoryLabels
    from .rulebook import Rulebook

_READS = OperationClass.RECALL
_WRITES = OperationClass.REMEMBER
_CHANGES = frozenset({_WRITES, OperationClass.FORGET})
"""Classes of calls that may write: one of a batch may, whose strictest operation deletes."""


class AskRules:
    """
    Asks the rules of a scope in one of its guards. Added only where there are rules.

    Args:
        faults: Where failing functions of the adapter are noted.
        parts: Splits calls that hold several operations. None: none does.
    """

    def __init__(
        self, rulebook: Rulebook, faults: Faults, store: str, parts: Parts | None = None
    ) -> None:
        self.rulebook = rulebook
        self._labels = rulebook.labels
        self._faults = faults
        self._store = store
        self._parts = parts

    def _operations(self, call: Call) -> tuple[Call, ...]:
        """Return what *call* asks of the store. Empty: it cannot be told."""
        if self._parts is None:
            also = call.method.also
            return (call, *[call.but(method=each) for each in also]) if also else (call,)
        try:
            return tuple(self._parts(call)) or (call,)
        except Exception as exc:  # noqa: BLE001 - rules that look at it find nothing
            self._faults.note("rules.parts", exc)
            return ()

    def faces(self, method: Method) -> Faces:
        """Return the faces that *method* needs: what is only resumed or saved is not looked at."""
        seats, may_write = self.rulebook.seats_at(method), method.op_class in _CHANGES
        labels = self._labels if may_write else None
        is_asked = seats or labels is not None
        before = partial(self._ask, seats, labels) if is_asked else None
        if before is not None and method.spare is not None:
            before = partial(self._ask_and_spare, before)
        abefore = None
        is_long = may_write and any(each.foresee is not None for each in seats)
        if before is not None and (is_long or labels is not None or self.rulebook.earlier):
            abefore = partial(self._aask, before, labels, is_long=is_long)
        after = self._see if before or method.op_class in {_READS, _WRITES} else None
        return Faces(before, after, abefore) if after else NOTHING

    def _ask(self, seats: Sequence[Seat], labels: MemoryLabels | None, call: Call) -> None:
        """Ask the rules in *seats*, with what *labels* say of the run, where it may write."""
        if call.covered:  # what it is part of was asked about
            return
        if labels is not None and labels.trail is not None:
            self._open(labels)
        error = self.rulebook.ask(call, self._operations(call), self._store, seats, labels)
        if error is not None:
            raise error

    def _ask_and_spare(self, ask: Face, call: Call) -> None:
        ask(call)
        spare = SPARE.of(call)
        if spare is None or call.method.spare is None:
            return
        why, share = spare
        try:
            less = call.method.spare(call.arguments, share)
            if less is not call.arguments:
                call.additions += (partial(_spared, why),)
            call.arguments = less
        except Exception as exc:  # noqa: BLE001 - then it finds as much as ever
            self._faults.note("rules.spare", exc)

    async def _aask(
        self, ask: Face, labels: MemoryLabels | None, call: Call, *, is_long: bool
    ) -> None:
        """Ask on a thread where that may take long, so that no event loop stands still for it."""
        is_long = is_long or self.rulebook.is_unread(call.scope)
        if not call.covered and (is_long or (labels and labels.unopened(labels.runs()))):
            import asyncio  # noqa: PLC0415 - a tenth of the time to configure a scope

            await asyncio.to_thread(ask, call)
        else:
            ask(call)

    def _open(self, labels: MemoryLabels) -> None:
        try:
            if unopened := labels.unopened(labels.runs()):
                labels.open(unopened)
        except Exception as exc:  # noqa: BLE001 - then what they have read is unknown
            self._faults.note("rules.labels", exc)

    def _see(self, call: Call) -> None:
        if call.covered:
            return
        if call.error is None:
            try:
                self.rulebook.saw_memory(self._store, call)
            except Exception as exc:  # noqa: BLE001 - observing fails open
                self._faults.note("rules.see", exc)
        elif isinstance(call.error, RuleError):
            self._refuse(call)

    def _refuse(self, call: Call) -> None:
        """Have a refused recall find nothing: its caller is not told why."""
        call.status = Status.DENIED
        method = call.method
        if method.op_class is _READS and method.neutral is not None and not call.sheltered:
            try:
                call.result, call.neutral = method.neutral(call.arguments), True
            except Exception as exc:  # noqa: BLE001 - then the caller sees the refusal
                self._faults.note("guard.neutral", exc)


def _spared(mode: str, _store: str, _call: Call) -> Spared:
    return Spared(mode)
