"""
A guard whose writes, where the store does not take them, are kept and made again.

While writes wait, later ones of the same guard are kept behind them: an older one must not come
after a newer one. Nothing is forgotten meanwhile either, for a write that is made again after a
deletion would bring back what was deleted: deletions wait for what waits, and are refused if that
takes too long.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from ...telemetry.event import Journalled, OperationClass, Status
from ..breaker import BreakerState
from ..call import Call
from ..errors import StoreUnavailableError
from ..guard import AsyncInvoke, Invoke
from ..operation import Method, Operation
from ..policy import LONGEST_S
from .records import Write
from .replay import KEEP_S, Kept, ReplayingGuard
from .shelf import Entry

_BEHIND = "earlier writes wait in the journal"


class JournalledGuard(ReplayingGuard):
    """A guard whose lost writes are not lost. Without a journal, like any other."""

    _task: asyncio.Task[bool] | None = None

    def call(self, operation: Operation, invoke: Invoke, *, inline: bool = False) -> Any:
        """Make one synchronous call: see `Guard.call`."""
        if self._kept is not None:
            try:
                self._look_after(self._kept, operation)
            except Exception as exc:  # noqa: BLE001 - closed: it might overtake what waits
                self._not_looked_after(operation, exc)
        return super().call(operation, invoke, inline=inline)

    async def acall(self, operation: Operation, invoke: AsyncInvoke) -> Any:
        """Make one asynchronous call: see `Guard.acall`."""
        if self._kept is not None:
            try:
                await self._alook_after(self._kept, operation)
            except Exception as exc:  # noqa: BLE001 - closed: it might overtake what waits
                self._not_looked_after(operation, exc)
        return await super().acall(operation, invoke)

    # -- before the call ---------------------------------------------------------------------------

    def _look_after(self, kept: Kept, operation: Operation) -> None:
        if not kept.journal.is_open():
            return
        forgets = operation.method.op_class is OperationClass.FORGET
        if forgets:
            kept.journal.adopt()
        if self._must_catch_up(kept, operation.method):
            operation.behind = not self.replay(self._until(operation.method))
        elif kept.queue.entries:
            self.runtime.replayer.watch(self)
        if forgets and not operation.behind:
            operation.behind = kept.journal.waits_elsewhere(kept.queue)

    async def _alook_after(self, kept: Kept, operation: Operation) -> None:
        if not kept.journal.is_open():
            return
        workers, journal = self.runtime.workers, kept.journal
        forgets = operation.method.op_class is OperationClass.FORGET
        if forgets:
            await workers.arun(journal.adopt, KEEP_S)
        if self._must_catch_up(kept, operation.method):
            operation.behind = not await self.areplay(self._until(operation.method))
        elif kept.queue.entries:
            self._begin_task(kept)
        if forgets and not operation.behind:
            look = partial(journal.waits_elsewhere, kept.queue)
            operation.behind = await workers.arun(look, KEEP_S)

    def _not_looked_after(self, operation: Operation, exc: Exception) -> None:
        self.runtime.faults.note("journal.look", exc)
        operation.behind = True

    def _must_catch_up(self, kept: Kept, method: Method) -> bool:
        """Tell a call that may neither overtake the writes that wait nor be kept behind them."""
        if not kept.queue.entries:
            return False
        if method.op_class is OperationClass.REMEMBER:
            return not _can_be_kept(kept, method)
        return method.op_class is OperationClass.FORGET

    def _until(self, method: Method) -> float:
        deadline_s = self.runtime.policy.deadline_s(method.op_class)
        return self.runtime.clock() + (deadline_s or LONGEST_S)

    def _begin_task(self, kept: Kept) -> None:
        """Begin to make the writes again on the caller's loop: the client may be bound to it."""
        task = self._task
        if task is not None and not (task.done() or task.get_loop().is_closed()):
            return
        opened = self.breakers[OperationClass.REMEMBER].state is BreakerState.OPEN
        if not opened and self._is_time(kept):
            # A context of its own: none of this is inside the call that happens to come first.
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self.areplay(), context=Context())

    def _take_place(self, call: Call) -> None:
        kept = self._kept
        if kept is None or call.method.op_class not in _CONCERNED:
            super()._take_place(call)
            return
        queues = bool(kept.queue.entries) and _can_be_kept(kept, call.method)
        if call.behind or queues:
            call.status = Status.REJECTED
            call.refusal = StoreUnavailableError(self.store, _BEHIND)
        self._mark(kept, call)
        if call.refusal is None:
            super()._take_place(call)

    def _mark(self, kept: Kept, call: Call) -> None:
        once = kept.writes.once
        if once is None or not _can_be_kept(kept, call.method):
            return
        write_id = uuid4().hex
        try:
            call.arguments = once.marked(call.method.name, call.arguments, write_id)
        except Exception as exc:  # noqa: BLE001 - it may then be written twice, and only then
            self.runtime.faults.note("journal.mark", exc)
        else:
            call.write_id = write_id

    # -- after the call ----------------------------------------------------------------------------

    def _keep(self, call: Call, status: Status) -> None:
        if self._kept is None or not _is_to_be_kept(self._kept, call, status):
            super()._keep(call, status)
            return
        append = partial(self._append, self._kept, call)
        try:
            # On a thread, since a disk that hangs must not take the agent down.
            self.runtime.workers.run(append, KEEP_S, _nothing)
            self.runtime.replayer.watch(self)
        except Exception as exc:  # noqa: BLE001 - full, failing, or of a kind that cannot be kept
            self._not_kept(call, status, exc)

    async def _akeep(self, call: Call, status: Status) -> None:
        if self._kept is None or not _is_to_be_kept(self._kept, call, status):
            super()._keep(call, status)
            return
        append = partial(self._append, self._kept, call)
        try:
            await self.runtime.workers.arun(append, KEEP_S)
        except Exception as exc:  # noqa: BLE001 - full, failing, or of a kind that cannot be kept
            self._not_kept(call, status, exc)

    def _not_kept(self, call: Call, status: Status, exc: Exception) -> None:
        self.runtime.faults.note("journal.append", exc)
        super()._keep(call, status)

    def _append(self, kept: Kept, call: Call) -> None:
        if call.landed:
            return
        write = self._write(kept, call)
        if call.refusal is None:
            call.entry = kept.journal.append(replace(write, in_doubt=True), call)
        else:
            call.entry = kept.journal.append(write)
        call.journal = Journalled.APPENDED
        self._note_landed(kept, call)

    def _write(self, kept: Kept, call: Call) -> Write:
        return Write(
            id=call.write_id or uuid4().hex,
            key=kept.queue.key,
            method=call.method.name,
            arguments=kept.writes.values.text(kept.writes.part(call.arguments)),
            created_ns=call.started_ns,
            labels=self._report.labels(call),
            customer=call.scope.customer if self.runtime.policy.enforce_tenancy else None,
            trace_id=call.trace.trace_id,
            span_id=call.trace.span_id,
            sampled=call.trace.sampled,
        )

    def _note_late(self, call: Call) -> None:
        super()._note_late(call)
        if self._kept is not None:
            self._note_landed(self._kept, call)

    def _note_landed(self, kept: Kept, call: Call) -> None:
        """Strike out a write that the store took after its caller had gone."""
        entry: Entry | None = call.entry
        if entry is None or not call.landed or not kept.journal.done(entry):
            return
        arrived = call.but(
            trace=self._again.below(call.trace),
            neutral=False,
            late=False,
            redacted=True,
            journal=Journalled.REPLAYED,
        )
        self._report.ended(arrived, Status.OK)


_CONCERNED = frozenset({OperationClass.REMEMBER, OperationClass.FORGET})


def _can_be_kept(kept: Kept, method: Method) -> bool:
    return method.name in kept.writes.methods and method.neutral is not None


def _is_to_be_kept(kept: Kept, call: Call, status: Status) -> bool:
    return (
        call.neutral
        and call.method.op_class is OperationClass.REMEMBER
        and _can_be_kept(kept, call.method)
        and status is not Status.REFUSED
        and (call.redacted or call.private)
    )


def _nothing() -> None:
    return
