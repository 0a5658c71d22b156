"""The step that asks the rules before a memory operation, and has them see what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....telemetry.event.event import OperationClass, Status
from ....telemetry.event.verdict_event import Point
from ....telemetry.process.faults import Faults
from ...errors import RuleError
from ..call import Call
from ..operation import Method
from ..step import NOTHING, Faces

if TYPE_CHECKING:
    from ...rules.memory_labels import MemoryLabels
    from ...rules.rule import Asked
    from ...rules.rulebook import Rulebook
    from ...rules.run_facts import RunFacts
    from .report import Parts

_READS = OperationClass.RECALL
_WRITES = OperationClass.REMEMBER
_CHANGES = frozenset({_WRITES, OperationClass.FORGET})
"""Classes of calls that may write: one of a batch may, whose strictest operation deletes."""


class AskRules:
    """
    Asks the rules of a scope in one of its guards. Added only where there are rules.

    Args:
        rulebook: The rules.
        faults: Where failing functions of the adapter are noted.
        store: The guard's store.
        parts: Splits calls that hold several operations. None: none does.
    """

    def __init__(
        self, rulebook: Rulebook, faults: Faults, store: str, parts: Parts | None = None
    ) -> None:
        from ...rules.rule import Asked  # noqa: PLC0415 - only where there are rules

        self._rulebook = rulebook
        self._labels = rulebook.labels
        self._faults = faults
        self._store = store
        self._parts = parts
        self._make = Asked

    def _asked(self, call: Call, operations: tuple[Call, ...] = ()) -> Asked:
        method = call.method
        return self._make(
            Point.MEMORY,
            method.name,
            call.scope,
            call,
            operations=operations,
            store=self._store,
            least=call.least,
        )

    def _operations(self, call: Call) -> tuple[Call, ...]:
        """Return what *call* asks of the store. None: it cannot be told."""
        if self._parts is None:
            return (call, *(call.but(method=each) for each in call.method.also))
        try:
            # Its parts have results only once it has ended well, and are asked about before.
            return tuple(self._parts(call.but(status=Status.CANCELLED))) or (call,)
        except Exception as exc:  # noqa: BLE001 - rules that look at it find nothing
            self._faults.note("rules.parts", exc)
            return ()

    def faces(self, method: Method) -> Faces:
        """Return the faces that *method* needs: what is only resumed or saved is not looked at."""
        before = self._ask if self._rulebook.is_asked_at(Point.MEMORY) else None
        if before is not None and method.spare is not None:
            before = self._ask_and_spare
        after = self._see if method.op_class in {_READS, _WRITES} or before else None
        abefore = self._aask if before and self._may_take_long(method) else None
        return Faces(before, after, abefore) if before or after else NOTHING

    def _may_take_long(self, method: Method) -> bool:
        """Return whether asking may wait for a judge, or for the audit trail."""
        if self._rulebook.takes_long_at(Point.MEMORY):
            return method.op_class in _CHANGES
        return self._labels is not None and method.op_class in _CHANGES

    def _ask(self, call: Call) -> None:
        if call.covered:  # what it is part of was asked about
            return
        if self._labels is not None and call.method.op_class in _CHANGES:
            if runs := self._labels.unopened():
                self._open(self._labels, runs)
            call.least = self._labels.least()
        self._rulebook.ask(self._asked(call, self._operations(call)))

    def _ask_and_spare(self, call: Call) -> None:
        self._ask(call)
        if call.spare is None or call.method.spare is None:
            return
        try:
            less = call.method.spare(call.arguments, call.spare[1])
            call.mode = None if less is call.arguments else call.spare[0]
            call.arguments = less
        except Exception as exc:  # noqa: BLE001 - then it finds as much as ever
            self._faults.note("rules.spare", exc)

    async def _aask(self, call: Call) -> None:
        """Ask on a thread where that may take long, so that no event loop stands still for it."""
        is_long = self._rulebook.takes_long_at(Point.MEMORY)
        if not call.covered and (is_long or (self._labels and self._labels.unopened())):
            import asyncio  # noqa: PLC0415 - a tenth of the time to configure a scope

            await asyncio.to_thread(self._ask, call)
        else:
            self._ask(call)

    def _open(self, labels: MemoryLabels, runs: list[RunFacts]) -> None:
        try:
            labels.open(runs)
        except Exception as exc:  # noqa: BLE001 - then what they have read is unknown
            self._faults.note("rules.labels", exc)

    def _see(self, call: Call) -> None:
        if call.covered:
            return
        error = call.error
        if isinstance(error, RuleError):
            self._refuse(call)
        elif error is None:
            try:
                op_class = call.method.op_class
                ids = call.summary.memory_ids if op_class is _READS else ()  # no checkpoints
                self._rulebook.saw_memory(self._asked(call), ids, wrote=op_class is _WRITES)
            except Exception as exc:  # noqa: BLE001 - observing fails open
                self._faults.note("rules.see", exc)

    def _refuse(self, call: Call) -> None:
        """Have a refused recall find nothing: its caller is not told why."""
        call.status = Status.DENIED
        method = call.method
        if method.op_class is _READS and method.neutral is not None and not call.sheltered:
            try:
                call.result, call.neutral = method.neutral(call.arguments), True
            except Exception as exc:  # noqa: BLE001 - then the caller sees the refusal
                self._faults.note("guard.neutral", exc)
