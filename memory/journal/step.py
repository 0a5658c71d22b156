"""
The step that keeps writes while the store is down.

A write that the store does not take is appended, redacted, to the write journal, if one is
configured, and made again in order, once, when the store is back (`memory.journal.replay`). Without
a journal it is counted as lost.

While writes wait for a database, later ones are kept behind them, whichever process makes them: an
older one must not come after a newer one. A deletion is noted in the journal before the store is
asked: what waits and is covered by it is dropped, what may be covered is made before, and where
neither can be done the deletion is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, TypeAlias, TypeVar
from uuid import uuid4

from ...telemetry.event.event import Journalled, OperationClass, Status
from ...telemetry.process.fork import reset_after_fork
from ..errors import REFUSALS, StoreUnavailableError
from ..guard.call import Call, error_name
from ..guard.operation import Method
from ..guard.script import adrive, drive
from ..guard.step import Faces, Step
from ..guard.steps.classify import status_of
from ..guard.steps.count_lost import count_lost
from ..guard.steps.making import GuardParts
from ..guard.touches import Touches
from ..limits.breaker import Blame, BreakerState
from ..limits.policy import LONGEST_S
from .journal import Dropped, Entry, ForgottenError, JournalWrite, Parked, is_full
from .records import Kept, Lease, Write
from .replay import KEEP_S, PASSED, Replay
from .slots import KEPT, ORDER_NS, TURN, WRITE_ID

_BEHIND = "earlier writes wait in the journal"
_PASS_S = 0.25
"""Seconds that a write waits to go before those that failed by themselves, perhaps."""

_UNREAD = "the journal cannot be read, and what waits in it may bring back what is deleted"


@dataclass(frozen=True, slots=True)
class _Drained:
    """Make what waits again until then."""

    until: float


@dataclass(frozen=True, slots=True)
class _Leased:
    """Take the lease, waiting until then."""

    until: float


class _Way(Enum):
    """How a write goes past those that wait."""

    BEHIND = auto()
    """It waits behind them."""
    BEHIND_BAD = auto()
    """It is made behind those that have likely failed by themselves, which are tried again now."""
    IN_FRONT = auto()
    """It is made before them, and nobody makes them meanwhile."""
    BESIDE = auto()
    """It is made at once: none of them can be of the same record."""


T = TypeVar("T")

_Work: TypeAlias = Callable[[], Any] | _Drained | _Leased
_Script: TypeAlias = Generator[_Work, Any, T]


class JournalWrites:
    """Keeps writes that the store did not take in the journal, and later calls behind them."""

    def __init__(self, parts: GuardParts, replay: Replay) -> None:
        self.replay = replay
        self._store = parts.store
        self._replayer = parts.replayer
        self._report = parts.report
        self._enforced_tenancy = parts.policy.enforce_tenancy
        self._workers = parts.workers
        self._faults = parts.faults
        self._clock = parts.clock
        self._is_watched = False
        reset_after_fork(self)

    def forked(self) -> None:
        """Have the child's own thread watch, from its first call on: many children only exit."""
        self._is_watched = False

    def lead(self, steps: Sequence[Step]) -> None:
        """
        Make writes again through the *steps* behind this one, from now on, before any call.

        Another process may leave some. A client of coroutines is called on the loop that runs now,
        if one does; else its first call says on which.
        """
        self.replay.calls.steps = tuple(steps)
        self._watch()
        with suppress(RuntimeError):
            self.replay.remember_loop(asyncio.get_running_loop())

    async def settle(self, until: float) -> bool:
        """See `CallKeeper.settle`."""
        return await self.replay.settle(until)

    def faces(self, method: Method) -> Faces:
        """Return what is done for writes and deletions; any call has the journal watched."""
        if method.op_class is OperationClass.REMEMBER:
            return Faces(self._before_write, self._keep, self._abefore_write, self._akeep)
        if method.op_class is OperationClass.FORGET:
            return Faces(self._before_forget, abefore=self._abefore_forget)
        return Faces(self._before, abefore=self._abefore)

    # -- before the store --------------------------------------------------------------------------

    def _watch(self) -> None:
        if not self._is_watched:
            self._is_watched = True
            self._replayer.watch_always(self.replay)

    def _before(self, _call: Call) -> None:
        self._watch()

    def _abefore(self, _call: Call) -> None:
        self._watch()
        self.replay.remember_loop(asyncio.get_running_loop())

    def _before_write(self, call: Call) -> None:
        self._watch()
        drive(self._admitting(call), self._do)

    async def _abefore_write(self, call: Call) -> None:
        self._abefore(call)
        await adrive(self._admitting(call), self._ado)

    def _admitting(self, call: Call) -> _Script[None]:
        """Let a write go to the store, or keep it behind what waits."""
        self._mark(call)
        is_to_wait = self._waits()  # opens the journal, if it is not open
        ORDER_NS.put(call, self.replay.journal.order())
        if not is_to_wait:
            return
        if not self._can_be_kept(call.method):
            if not (yield _Drained(self._until(call))):
                raise self._behind()
        elif not (yield from self._going_past(call)):
            yield from self._waiting_behind(call)

    def _going_past(self, call: Call) -> _Script[bool]:
        way = self._way(call)
        if way is _Way.BEHIND_BAD:
            if (yield _Drained(self._clock() + _PASS_S)):
                return True
            way = self._way(call, have_failed_again=True)
        if way is _Way.IN_FRONT:
            self._begin_turn(call, (yield _Leased(self._clock() + _PASS_S)))
        return way is _Way.BESIDE or TURN.of(call) is not None

    def _waiting_behind(self, call: Call) -> _Script[None]:
        try:
            if self._is_to_wait(call):
                yield partial(self._append, call)
        except Exception as exc:  # noqa: BLE001 - full, failing, or of a kind that cannot be kept
            if self._may_overtake(call, exc):
                self._begin_turn(call, (yield _Leased(self._until_turn(call))))
        if TURN.of(call) is None:
            raise self._behind()

    def _way(self, call: Call, *, have_failed_again: bool = False) -> _Way:
        """
        Tell how *call* goes past all that waits.

        It may where each of them failed for a reason of its own, perhaps, or waits for the sake of
        those. If the store takes this one, they did.
        """
        queue = self.replay.queue
        try:
            ahead = self.replay.journal.ahead(queue)
        except Exception as exc:  # noqa: BLE001 - closed: it might overtake what waits
            self._faults.note("journal.look", exc)
            return _Way.BEHIND
        queue.has_doubts = any(each.is_puzzling for each in ahead.doubts)
        if not (ahead.doubts and ahead.is_all):
            return _Way.BEHIND
        touches = self._touches(call)
        before = ahead.passed_by(touches)
        are_bad = touches.unknown or all(each.is_contradicted for each in before)
        if before and are_bad and not have_failed_again:
            return _Way.BEHIND_BAD
        return _way_past([*ahead.behind, *(each.touches for each in ahead.doubts)], touches)

    def _touches(self, call: Call) -> Touches:
        """Return what *call* writes, as the journal has it of what waits."""
        touches = self.replay.writes.touches(call.method.name, call.arguments)
        return self.replay.journal.comparable(touches)

    def _is_to_wait(self, call: Call) -> bool:
        """Tell whether *call* may be kept: whoever has an outer call is told of its failure."""
        return not call.sheltered and call.redacted

    def _may_overtake(self, call: Call, exc: Exception) -> bool:
        """
        Tell whether *call*, for which the journal has no room, may go to the store at once.

        Else it would be lost, and the store be up. Nobody makes what waits meanwhile, and what is
        older gives way to it afterwards.
        """
        if not is_full(exc):
            self._not_kept(call, exc)
            call.journal = Journalled.LOST
            return False
        self._faults.note("journal.room", exc)
        return call.limits.breaker.state is not BreakerState.OPEN

    def _until_turn(self, call: Call) -> float:
        return self._clock() + min(KEEP_S, (call.limits.deadline_s or LONGEST_S) / 2)

    def _waits(self) -> bool:
        try:
            if not self.replay.waits_none:
                return True
        except Exception as exc:  # noqa: BLE001 - closed: it might overtake what waits
            self._faults.note("journal.look", exc)
            raise self._behind() from None
        self.replay.queue.has_doubts = False
        return False

    def _behind(self) -> StoreUnavailableError:
        return StoreUnavailableError(self._store, _BEHIND)

    def _until(self, call: Call) -> float:
        return self._clock() + (call.limits.deadline_s or LONGEST_S)

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
            WRITE_ID.put(call, write_id)

    # -- before a deletion -------------------------------------------------------------------------

    def _before_forget(self, call: Call) -> None:
        self._watch()
        try:
            drive(self._forgetting(call), self._do)
        except Exception as exc:  # noqa: BLE001 - closed
            raise self._refused(exc) from None

    async def _abefore_forget(self, call: Call) -> None:
        self._abefore(call)
        try:
            await adrive(self._forgetting(call), self._ado)
        except Exception as exc:  # noqa: BLE001 - closed
            raise self._refused(exc) from None

    def _forgetting(self, call: Call) -> _Script[None]:
        """Note the deletion, and see that nothing it covers waits any more."""
        until, replay = self._until(call), self.replay
        if not replay.journal.is_open():
            raise StoreUnavailableError(self._store, _UNREAD)
        touches = replay.writes.touches(call.method.name, call.arguments)
        # It tells by itself what it drops: its caller may have gone by then.
        note = partial(replay.journal.forget, replay.queue, touches, tell=self._tell)
        dropped: Dropped = yield note
        if not dropped.left:
            return
        yield _Drained(until)  # what it may cover goes before it
        lease: Lease | None = yield _Leased(until)
        if lease is not None:
            try:
                dropped = yield partial(note, leased=True)
            finally:
                replay.release(lease)
        if dropped.left:
            raise self._behind()

    def _refused(self, exc: Exception) -> StoreUnavailableError:
        if isinstance(exc, StoreUnavailableError):
            return exc
        self._faults.note("journal.forget", exc)
        return StoreUnavailableError(self._store, _UNREAD)

    def _do(self, work: _Work) -> Any:
        if isinstance(work, _Drained):
            return self.replay.drain(work.until)
        if isinstance(work, _Leased):
            return self.replay.lease(work.until)
        # On a thread, since a disk that hangs must not take the agent down.
        return self._workers.run(work, KEEP_S, _nothing)

    async def _ado(self, work: _Work) -> Any:
        if isinstance(work, _Drained):
            return await self.replay.adrain(work.until)
        if isinstance(work, _Leased):
            return await self.replay.alease(work.until)
        return await self._workers.arun(work, KEEP_S)

    def _tell(self, dropped: list[Write]) -> None:
        for write in dropped:
            self.replay.tell(write, Journalled.FORGOTTEN)

    # -- after the store ---------------------------------------------------------------------------

    def _keep(self, call: Call) -> None:
        drive(self._keeping(call), self._do)

    async def _akeep(self, call: Call) -> None:
        await adrive(self._keeping(call), self._ado)

    def _keeping(self, call: Call) -> _Script[None]:
        self._end_turn(call)
        if not self._is_to_be_kept(call):
            self._settled(call)
            return
        try:
            yield partial(self._append, call)
        except Exception as exc:  # noqa: BLE001 - full, failing, or of a kind that cannot be kept
            self._not_kept(call, exc)

    def _begin_turn(self, call: Call, turn: Lease | None) -> None:
        """Have *call* go before what waits, unless the store is at work on some of that still."""
        if turn is None:
            return
        journal, queue = self.replay.journal, self.replay.queue
        try:
            if not journal.has_in_flight(queue):
                passed = journal.ahead(queue).passed_by(self._touches(call))
                TURN.put(call, turn._replace(passes=[each.seq for each in passed]))
        except Exception as exc:  # noqa: BLE001 - closed: an older write may come after it
            self._faults.note("journal.look", exc)
        if TURN.of(call) is None:
            self.replay.release(turn)

    def _end_turn(self, call: Call) -> None:
        turn = TURN.of(call)
        TURN.put(call, None)
        if turn is not None:
            if call.error is None:  # before anybody makes an older one
                self._note_written(call)
                self._set_aside(turn.passes)
            self.replay.release(turn)

    def _set_aside(self, passed: Sequence[int]) -> None:
        """Set aside the writes that a later one has passed, and that must not come after it."""
        if not passed:
            return
        try:
            parked = [Parked(Entry(seq, None, in_doubt=True), PASSED) for seq in passed]
            self.replay.journal.settle(self.replay.queue, done=(), parked=parked)
        except Exception as exc:  # noqa: BLE001 - it waits still, and may come after the later one
            self._faults.note("journal.pass", exc)

    def _settled(self, call: Call) -> None:
        """Note a write that the store has, or that nobody has."""
        count_lost(call)
        if call.error is None:
            self._note_written(call)

    def _note_written(self, call: Call) -> None:
        """Note a write that the store has, so that no older one is made after it."""
        try:
            touches = self.replay.writes.touches(call.method.name, call.arguments)
            journal, queue = self.replay.journal, self.replay.queue
            asked_ns = ORDER_NS.of(call) or journal.order()
            if asked_ns is not None:
                journal.note_written(queue, touches, asked_ns)
                if queue.has_doubts:
                    journal.note_answer(queue, asked_ns)
                    queue.not_before = 0.0  # what failed for a reason of its own fails again now
        except Exception as exc:  # noqa: BLE001 - an older one may then come after it
            self._faults.note("journal.latest", exc)

    def _is_to_be_kept(self, call: Call) -> bool:
        if not call.neutral or call.status is Status.REFUSED:
            return False
        if call.journal is not Journalled.NO:
            return False  # it was kept before, behind others, or cannot be
        return self._can_be_kept(call.method) and call.redacted

    def _can_be_kept(self, method: Method) -> bool:
        return method.name in self.replay.writes.methods and method.neutral is not None

    def _not_kept(self, call: Call, exc: Exception) -> None:
        self._faults.note("journal.append", exc)
        count_lost(call)

    def begin_late(self, call: Call) -> Call | None:
        """Return *call*, in its place, as it may be kept when it is redacted. None: it cannot."""
        if call.sheltered or not self._can_be_kept(call.method):
            return None
        try:
            return self._as_late(call)
        except Exception as exc:  # noqa: BLE001 - it is lost then if it is redacted too late
            self._faults.note("journal.late", exc)
            return None

    def _as_late(self, call: Call) -> Call | None:
        self._watch()
        with suppress(RuntimeError):
            self.replay.remember_loop(asyncio.get_running_loop())
        if not self.replay.journal.is_open():
            return None
        late = Call(
            call.method,
            call.arguments,
            call.scope,
            self.replay.calls.below(call.trace),
            call.context,
            call.started_ns,
            call.started,
            call.plan,
        )
        late.nested = call.nested
        ORDER_NS.put(late, self.replay.journal.order())
        return late

    def end_late(self, late: Call, behind: Callable[[Call], None]) -> None:
        """Keep *late*, now redacted, if the steps behind *behind* let it pass; else report it."""
        try:
            if late.error is None:
                steps = late.plan.before
                for before in steps[steps.index(behind) + 1 : steps.index(self._before_write)]:
                    before(late)
                self._mark(late)
                self._append(late)
        except Exception as exc:  # noqa: BLE001 - refused, full, or of a kind that cannot be kept
            late.error = exc
        if late.error is not None:
            self._report_lost(late, late.error)

    def _report_lost(self, late: Call, error: BaseException) -> None:
        self._faults.note("journal.late", error)
        is_forgotten = isinstance(error, ForgottenError)
        late.journal = Journalled.FORGOTTEN if is_forgotten else Journalled.LOST
        refused = isinstance(error, REFUSALS)
        late.status = Status.DENIED if refused else status_of(error, neutral=False)
        self._report.report_unawaited(late)

    def _append(self, call: Call) -> None:
        if call.landed:
            return
        asked, queue = self._asked(call), self.replay.queue
        seq = self.replay.journal.append(queue, asked)
        KEPT.put(call, Kept(seq, asked.write))
        call.journal = Journalled.APPENDED
        if call.landed:
            self.note_ended(call)

    def _asked(self, call: Call) -> JournalWrite:
        """Return *call* as the journal has it: redacted, without what is no write of it."""
        writes, method = self.replay.writes, call.method
        write = Write(
            id=WRITE_ID.of(call) or uuid4().hex,
            method=method.name,
            arguments=self.replay.calls.codec.text(writes.part(call.arguments)),
            created_ns=call.started_ns,
            labels=self._report.labels(call),
            customer=call.scope.customer if self._enforced_tenancy else None,
            trace_id=call.trace.trace_id,
            span_id=call.trace.span_id,
            sampled=call.trace.sampled,
        )
        touches = writes.touches(method.name, call.arguments)
        reached = call.admission is not None
        blame = call.blame if call.failed else None
        return JournalWrite(
            write,
            touches,
            in_doubt=reached,
            lands=reached and not call.ended,
            blame=blame,
            parked=error_name(call.error) if call.error and blame is Blame.INPUT else None,
            asked_ns=ORDER_NS.of(call) or self.replay.journal.order(),
        )

    def note_ended(self, call: Call) -> None:
        """Take a write from the journal that the store took after its caller had gone."""
        kept = KEPT.of(call)
        if kept is None:
            return
        if call.landed:
            self._note_written(call)
            self.replay.queue.not_before = 0.0  # the store answers, and others wait for it
        try:
            struck = self.replay.journal.ended(kept.seq, landed=call.landed)
        except Exception as exc:  # noqa: BLE001 - it waits still, and is made again
            self._faults.note("journal.ended", exc)
            return
        if struck:
            self.replay.tell(kept.write, Journalled.REPLAYED)


def _way_past(waiting: list[Touches], touches: Touches) -> _Way:
    if any(each.holds_back(touches) for each in waiting):
        return _Way.BEHIND
    return _Way.BESIDE if all(each.is_apart_from(touches) for each in waiting) else _Way.IN_FRONT


def _nothing() -> None:
    return
