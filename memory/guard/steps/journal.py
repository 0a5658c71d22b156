"""
The step that keeps writes while the store is down.

A write that the store does not take is appended, redacted, to the write journal, if one is
configured, and made again in order, once, when the store is back (`memory.journal.replay`). Without
a journal it is counted as lost.

While writes wait, later ones of the same client are kept behind them: an older one must not come
after a newer one. Nothing is forgotten meanwhile either, since a write that is made again after a
deletion would bring back what was deleted: deletions wait for what waits, and are refused if that
takes too long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from functools import partial
from uuid import uuid4

from ....telemetry.event.event import Journalled, OperationClass, Status
from ....telemetry.process.faults import Faults
from ...errors import StoreUnavailableError
from ...journal.journal_file import Entry
from ...journal.records import Write
from ...journal.replay import KEEP_S, Replay
from ...journal.replayer import Replayer
from ...limits.breaker import Breaker, BreakerState
from ...limits.policy import LONGEST_S
from ...limits.workers import Workers
from ..call import Call
from ..operation import Method
from ..step import NOTHING, Faces
from .report import Report

_BEHIND = "earlier writes wait in the journal"
_WRITES = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT})


class CountLostWrites:
    """Counts writes that the store did not take, where there is no journal to keep them."""

    def faces(self, method: Method) -> Faces:
        """Return the face after the store, for writes."""
        return Faces(after=count_lost) if method.op_class in _WRITES else NOTHING


def count_lost(call: Call) -> None:
    """Mark the write of *call* as lost, if nothing has it."""
    if not call.neutral or call.late or call.status is Status.REFUSED:
        return
    if call.journal is Journalled.NO:
        call.journal = Journalled.LOST


class JournalWrites:
    """
    Keeps writes that the store did not take in the journal, and later calls behind them.

    Args:
        store: The guard's store.
        replay: Makes the writes again.
        replayer: The thread that does so, for clients that are called synchronously.
        breaker: The breaker of writes.
        report: Emits the events of writes that arrived late; knows the labels of calls.
        enforced_tenancy: Writes are kept with their customer.
        workers: Threads for the journal's disk.
        faults: Where a failing journal is noted.
        clock: Monotonic seconds.

    Attributes:
        replay: As given.
    """

    def __init__(
        self,
        store: str,
        *,
        replay: Replay,
        replayer: Replayer,
        breaker: Breaker,
        report: Report,
        enforced_tenancy: bool,
        workers: Workers,
        faults: Faults,
        clock: Callable[[], float],
    ) -> None:
        self.replay = replay
        self._store = store
        self._replayer = replayer
        self._breaker = breaker
        self._report = report
        self._enforced_tenancy = enforced_tenancy
        self._workers = workers
        self._faults = faults
        self._clock = clock
        self._task: asyncio.Task[bool] | None = None

    def faces(self, method: Method) -> Faces:
        """Return what is done for writes and deletions; other calls make waiting writes again."""
        if method.op_class is OperationClass.REMEMBER:
            return Faces(self._before_write, self._keep, self._abefore_write, self._akeep)
        if method.op_class is OperationClass.FORGET:
            return Faces(self._before_forget, abefore=self._abefore_forget)
        return Faces(self._before_any, abefore=self._abefore_any)

    # -- before the store --------------------------------------------------------------------------

    def _before_any(self, _call: Call) -> None:
        with suppress(StoreUnavailableError):  # a call that writes nothing overtakes nothing
            if self._is_open() and self.replay.queue.entries:
                self._replayer.watch(self.replay)

    async def _abefore_any(self, _call: Call) -> None:
        with suppress(StoreUnavailableError):  # a call that writes nothing overtakes nothing
            if self._is_open() and self.replay.queue.entries:
                self._begin_task()

    def _before_write(self, call: Call) -> None:
        self._mark(call)
        if not self._is_open() or not self.replay.queue.entries:
            return
        if self._can_be_kept(call.method):
            self._replayer.watch(self.replay)
            raise self._behind()
        if not self.replay.replay(self._until(call)):
            raise self._behind()

    async def _abefore_write(self, call: Call) -> None:
        self._mark(call)
        if not self._is_open() or not self.replay.queue.entries:
            return
        if self._can_be_kept(call.method):
            self._begin_task()
            raise self._behind()
        if not await self.replay.areplay(self._until(call)):
            raise self._behind()

    def _before_forget(self, call: Call) -> None:
        if not self._is_open():
            return
        journal, queue = self.replay.journal, self.replay.queue
        try:
            journal.adopt()
            waits = bool(queue.entries) and not self.replay.replay(self._until(call))
            waits = waits or journal.waits_elsewhere(queue)
        except Exception as exc:  # noqa: BLE001 - closed: what waits could bring back what is deleted
            self._faults.note("journal.look", exc)
            waits = True
        if waits:
            raise self._behind()

    async def _abefore_forget(self, call: Call) -> None:
        if not self._is_open():
            return
        journal, queue = self.replay.journal, self.replay.queue
        try:
            await self._workers.arun(journal.adopt, KEEP_S)
            waits = bool(queue.entries) and not await self.replay.areplay(self._until(call))
            if not waits:
                waits = await self._workers.arun(partial(journal.waits_elsewhere, queue), KEEP_S)
        except Exception as exc:  # noqa: BLE001 - closed: what waits could bring back what is deleted
            self._faults.note("journal.look", exc)
            waits = True
        if waits:
            raise self._behind()

    def _is_open(self) -> bool:
        try:
            return self.replay.journal.is_open()
        except Exception as exc:  # noqa: BLE001 - closed: it might overtake what waits
            self._faults.note("journal.look", exc)
            raise self._behind() from None

    def _behind(self) -> StoreUnavailableError:
        return StoreUnavailableError(self._store, _BEHIND)

    def _until(self, call: Call) -> float:
        return self._clock() + (call.limits.deadline_s or LONGEST_S)

    def _begin_task(self) -> None:
        """Begin to make the writes again on the caller's loop: the client may be bound to it."""
        task = self._task
        if task is not None and not (task.done() or task.get_loop().is_closed()):
            return
        if self._breaker.state is not BreakerState.OPEN and self.replay.is_time:
            # A context of its own: none of this is inside the call that happens to come first.
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self.replay.areplay(), context=Context())

    def _mark(self, call: Call) -> None:
        """Give the write an id, in stores that would take it twice."""
        once = self.replay.writes.once
        if once is None or not self._can_be_kept(call.method):
            return
        write_id = uuid4().hex
        try:
            call.arguments = once.marked(call.method.name, call.arguments, write_id)
        except Exception as exc:  # noqa: BLE001 - it may then be written twice, and only then
            self._faults.note("journal.mark", exc)
        else:
            call.write_id = write_id

    # -- after the store ---------------------------------------------------------------------------

    def _keep(self, call: Call) -> None:
        if not self._is_to_be_kept(call):
            count_lost(call)
            return
        try:
            # On a thread, since a disk that hangs must not take the agent down.
            self._workers.run(partial(self._append, call), KEEP_S, _nothing)
            self._replayer.watch(self.replay)
        except Exception as exc:  # noqa: BLE001 - full, failing, or of a kind that cannot be kept
            self._not_kept(call, exc)

    async def _akeep(self, call: Call) -> None:
        if not self._is_to_be_kept(call):
            count_lost(call)
            return
        try:
            await self._workers.arun(partial(self._append, call), KEEP_S)
        except Exception as exc:  # noqa: BLE001 - full, failing, or of a kind that cannot be kept
            self._not_kept(call, exc)

    def _is_to_be_kept(self, call: Call) -> bool:
        if not call.neutral or call.status is Status.REFUSED:
            return False
        return self._can_be_kept(call.method) and (call.redacted or call.private)

    def _can_be_kept(self, method: Method) -> bool:
        return method.name in self.replay.writes.methods and method.neutral is not None

    def _not_kept(self, call: Call, exc: Exception) -> None:
        self._faults.note("journal.append", exc)
        count_lost(call)

    def _append(self, call: Call) -> None:
        if call.landed:
            return
        write = self._write(call)
        if call.admission is None:
            call.entry = self.replay.journal.append(write)
        else:
            call.entry = self.replay.journal.append(replace(write, in_doubt=True), call)
        call.journal = Journalled.APPENDED
        self.note_landed(call)

    def _write(self, call: Call) -> Write:
        writes = self.replay.writes
        return Write(
            id=call.write_id or uuid4().hex,
            key=self.replay.queue.key,
            method=call.method.name,
            arguments=writes.values.text(writes.part(call.arguments)),
            created_ns=call.started_ns,
            labels=self._report.labels(call),
            customer=call.scope.customer if self._enforced_tenancy else None,
            trace_id=call.trace.trace_id,
            span_id=call.trace.span_id,
            sampled=call.trace.sampled,
        )

    def note_landed(self, call: Call) -> None:
        """Remove a write from the journal that the store took after its caller had gone."""
        entry: Entry | None = call.entry
        if entry is None or not call.landed or not self.replay.journal.done(entry):
            return
        self._report.report(
            call.but(
                trace=self.replay.calls.below(call.trace),
                neutral=False,
                late=False,
                redacted=True,
                error=None,
                status=Status.OK,
                journal=Journalled.REPLAYED,
            )
        )


def _nothing() -> None:
    return
