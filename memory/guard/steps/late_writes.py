"""
The step that keeps a deletion from being undone by a write that the store is still at work on.

A write that outlived its deadline may land at any time. So a deletion waits for those that it
covers, or may cover. Where one does not end in time the deletion is made, and its caller is told
that it cannot be said whether it lasts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING

from ....telemetry.event.event import OperationClass, Status
from ....telemetry.process.fork import reset_after_fork
from ...errors import ForgetUncertainError
from ...limits.policy import LONGEST_S
from ..call import Call, Slot
from ..operation import Method
from ..script import adrive, drive
from ..step import NOTHING, Faces
from ..touches import Covered, Touches
from ..writes import untold

if TYPE_CHECKING:
    from ..step import Step
    from .making import GuardParts

_POLL_S = 0.02

_UNDONE_BY: Slot[Iterable[Call]] = Slot("mnemoscope.undone_by", ())
"""Late writes that may bring back what a call deletes."""


class LateWrites:
    """The writes of this process that outlived their callers, by database."""

    def __init__(self) -> None:
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin anew in a forked child: the threads are the parent's."""
        self._late: dict[object, list[tuple[Call, Touches]]] = {}
        self._lock = threading.Lock()

    def add(self, database: object, call: Call, touches: Touches) -> None:
        """Take note of a write that the store is still at work on."""
        with self._lock:
            known = self._late.setdefault(database, [])
            # Those that have ended hold the arguments of their calls.
            known[:] = [*(each for each in known if not each[0].ended), (call, touches)]

    def covered(self, database: object, deletion: Touches) -> list[Call]:
        """Return those that *deletion* covers, or may cover."""
        if database not in self._late:
            return []
        with self._lock:
            known = self._late[database]
            known[:] = [each for each in known if not each[0].ended]
            return [call for call, touches in known if deletion.covers(touches) is not Covered.NO]


class LateWriteSteps:
    """Makes the step that has the deletions of a guard wait for late writes."""

    def __init__(self) -> None:
        self._late = LateWrites()

    def __call__(self, parts: GuardParts) -> Sequence[Step]:
        """Return the step of one guard."""
        return (WaitForLateWrites(parts, self._late),)


class WaitForLateWrites:
    """Has deletions wait for the writes that they cover and the store is still at work on."""

    def __init__(self, parts: GuardParts, late: LateWrites) -> None:
        self._store = parts.store
        # What is known of no database is at least the store of this one client.
        self._database: object = parts.database or parts.classify
        self._late = late
        self._touches = untold if parts.writes is None else parts.writes.touches
        self._clock = parts.clock

    def faces(self, method: Method) -> Faces:
        """Return what is done for writes and for deletions."""
        if method.op_class is OperationClass.REMEMBER:
            return Faces(after=self._note_late)
        if method.op_class is OperationClass.FORGET:
            return Faces(self._wait, self._doubt, self._await)
        return NOTHING

    def _note_late(self, call: Call) -> None:
        if call.late and not call.ended and call.admission is not None:
            self._late.add(self._database, call, self._touched(call))

    def _wait(self, call: Call) -> None:
        drive(self._waiting(call), time.sleep)

    async def _await(self, call: Call) -> None:
        import asyncio  # noqa: PLC0415 - it runs already, and costs time to configure a scope

        await adrive(self._waiting(call), asyncio.sleep)

    def _waiting(self, call: Call) -> Generator[float, None, None]:
        until, deleted = self._until(call), self._touched(call)
        # A store does not say when it has finished.
        while (late := self._covered(deleted)) and self._clock() < until:
            yield _POLL_S
        _UNDONE_BY.put(call, late)

    def _touched(self, call: Call) -> Touches:
        return self._touches(call.method.name, call.arguments)

    def _covered(self, deleted: Touches) -> Iterable[Call]:
        return self._late.covered(self._database, deleted)

    def _until(self, call: Call) -> float:
        # The other half of the deadline is the store's.
        return self._clock() + (call.limits.deadline_s or LONGEST_S) / 2

    def _doubt(self, call: Call) -> None:
        if call.error is None and _UNDONE_BY.of(call):
            call.error, call.status = ForgetUncertainError(self._store), Status.ERROR
        _UNDONE_BY.put(call, ())  # those writes hold arguments: not longer than they must
