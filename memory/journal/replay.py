"""
Replay of journalled writes, in order and once each.

One script, for sync and async, says what is to be done, step by step; two drivers do it. Writes are
taken in batches: before the store is asked for the first of one, the file says that it may have
them all; behind the last, one transaction says what became of each. A write in doubt is looked for
first, in stores that would take it twice. One that fails by itself is set aside and the others go
on; while the store is down all of them wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from inspect import iscoroutinefunction
from math import inf
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ...telemetry.event.event import Journalled, Status
from ...telemetry.process.exit_deadline import is_exiting
from ..context import context
from ..errors import StoreUnavailableError, UnexpectedAnswerError
from ..guard.call import Call, error_name
from ..guard.outages import is_of_the_deployment
from ..guard.retry_after import retry_after_s
from ..guard.script import adrive, drive
from ..guard.steps.making import GuardParts
from ..guard.touches import UNTOLD, Covered, Touches
from ..guard.writes import JournalledWrites
from ..limits.breaker import Blame
from ..limits.loop_task import LoopTask
from ..limits.workers import Expired
from .journal import MOST_TRIES, Entry, Failed, Journal, Parked, Queue
from .records import Kept, Lease, Write
from .replayed_call import ReplayedCalls
from .slots import KEPT, ORDER_NS

KEEP_S = 5.0
"""Longest time that a caller waits for the journal's disk."""

UNREADABLE = "unreadable"
"""Why a write is set aside that is not as it was written, or was written under another key."""

SUPERSEDED_IN_PART = "superseded in part"
"""Why a write is set aside of which only some records were written later by another."""

PASSED = "a later write came before it"
"""Why a write is set aside that failed by itself, and of which it is not known what it touches."""

_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 5.0
_POLL_S = 0.02
_MOST_DOUBLINGS = 10
ORDERED_TRIES = 8
"""Attempts at a write, as a store seems to be down, in which nothing behind it is tried."""

ORDERED_S = 10.0
"""Seconds that such a write has waited before: attempts of many processes are soon eight."""

_MOST_WITNESSES = 3
"""Further writes, at most, that a store is asked for behind one that it seems to be down for."""


class _Disk(NamedTuple):
    work: Callable[[], Any]


class _Store(NamedTuple):
    call: Call
    method: str
    customer: str | None


class _Pause:
    """Wait a little."""


T = TypeVar("T")

_Step: TypeAlias = _Disk | _Store | _Pause
_Script: TypeAlias = Generator[_Step, Any, T]


_NOT_ADMITTED = (StoreUnavailableError, Expired)


class _NotNowError(Exception):
    """The store does not take it yet."""


class _PassedError(_NotNowError):
    """The store did not take it, and may take others."""


@dataclass(slots=True)
class _Passed:
    """
    A write that the store did not take, and that others may go past.

    Attributes:
        is_own: It failed by itself, perhaps. Else: the store seems to be down.
        is_at_work: The store is still at work on it.
    """

    entry: Entry
    touches: Touches
    failed_ns: int
    tries: int
    is_own: bool
    is_at_work: bool = False

    def holds_back(self, later: Touches) -> bool:
        """Tell whether a *later* write is to wait while this one does."""
        if self.is_at_work:  # it may land at any time, and nothing can be set aside for it
            return not self.touches.is_apart_from(later)
        if self.is_own or self.tries > MOST_TRIES:
            return self.touches.holds_back(later)
        return self.touches.needs_order_with(later)

    def as_failed(self, *, is_down: bool) -> Failed:
        """Return it for the journal."""
        return Failed(self.entry, None if is_down else self.failed_ns, self.tries)


@dataclass(slots=True)
class _Batch:
    """What became of the writes that were taken, and the calls to be told of."""

    done: list[int] = field(default_factory=list[int])
    parked: list[Parked] = field(default_factory=list[Parked])
    untried: list[int] = field(default_factory=list[int])
    behind: list[int] = field(default_factory=list[int])
    flying: list[int] = field(default_factory=list[int])
    told: list[Call] = field(default_factory=list[Call])
    passed: list[_Passed] = field(default_factory=list[_Passed])
    cause: BaseException | None = field(default=None, repr=False)  # a store's may quote content
    answered: bool = False
    stopped: bool = False
    is_down: bool = False

    @property
    def unexplained(self) -> list[_Passed]:
        """What failed as where the store is down, while nothing says that it is up."""
        return [each for each in self.passed if not each.is_own]

    def note_answer(self, written: Touches) -> None:
        """Note that the store is up, and set aside what must not be made after what it took."""
        self.answered = True
        later = [each for each in self.passed if each.touches.needs_order_with(written)]
        self.parked += [Parked(each.entry, PASSED) for each in later]
        self.passed = [each for each in self.passed if each not in later]
        for each in self.passed:
            each.is_own = True


class Replay:
    """Makes the writes again that wait for one client's database."""

    def __init__(
        self,
        parts: GuardParts,
        *,
        journal: Journal,
        queue: Queue,
        writes: JournalledWrites,
        calls: ReplayedCalls,
    ) -> None:
        self.journal = journal
        self.queue = queue
        self.writes = writes
        self.calls = calls
        self._deadline = parts.deadline
        self._classify = parts.classify
        self._report = parts.report
        self._workers = parts.workers
        self._faults = parts.faults
        self._clock = parts.clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task = LoopTask()

    @property
    def waits_none(self) -> bool:
        """
        Whether no write waits for the database.

        Raises:
            OSError: That cannot be told.
        """
        return not self.journal.waits(self.queue)

    def drain(self, until: float | None = None) -> bool:
        """
        Make the writes that wait again, as far as the store takes them.

        Args:
            until: Monotonic seconds until which to wait for whoever is at it already, and after
                which to stop. None: do not wait, and stop where it is not worth trying yet.

        Returns:
            Whether none waits any more.
        """
        drive(self._draining(until), self._do)
        return self.waits_none

    async def adrain(self, until: float | None = None) -> bool:
        """Make the writes that wait again, as `drain`, through the client's coroutines."""
        await adrive(self._draining(until), self._ado)
        return self.waits_none

    def _draining(self, until: float | None) -> _Script[None]:
        with self._leased((yield from self._leasing(until))) as is_ours:
            while is_ours and self._has_time(until) and (yield from self._batch(until)):
                pass

    @contextmanager
    def _leased(self, lease: Lease | None) -> Generator[bool]:
        """Hold *lease* inside the block. False: there is none."""
        try:
            yield lease is not None
        except Exception as exc:  # noqa: BLE001 - an error of ours, and what waits still waits
            self._faults.note("journal.replay", exc)
        finally:
            if lease is not None:
                self.release(lease)

    async def settle(self, until: float) -> bool:
        """As `adrain`, or as `drain` where the client is called synchronously."""
        return await self.adrain(until) if self._is_async else self.drain(until)

    @property
    def _is_async(self) -> bool:
        client, methods = self.writes.client, self.writes.methods
        return any(iscoroutinefunction(getattr(client, each, None)) for each in methods)

    # -- by itself --------------------------------------------------------------------------------

    def remember_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take note of the loop that the client is called on: it may be bound to it."""
        self._loop = loop

    def replay(self) -> bool:
        """
        Make the writes that wait again, from a thread of ours: on the client's loop, if it has one.

        Returns:
            Whether none waits any more.
        """
        self.journal.tidy()
        loop = self._loop
        # An asynchronous client's connections belong to the loop that it was first called on.
        if loop is not None and loop.is_running():
            if self.is_time:
                self._task.begin(loop, self.adrain)
            return self.waits_none
        return self.waits_none if self._is_async else self.drain()

    def tell(self, write: Write, journal: Journalled) -> None:
        """Report what became of a write that had waited."""
        try:
            call = self.calls.call(self.writes, write)
        except Exception as exc:  # noqa: BLE001 - it is told without what cannot be read
            self._faults.note("journal.tell", exc)
            call = self.calls.unread()
        call.journal, call.status = journal, Status.OK
        self._report.report_unawaited(call)

    # -- the lease --------------------------------------------------------------------------------

    def lease(self, until: float | None) -> Lease | None:
        """Return the right to make the queue's writes; None: somebody else has it all the time."""
        return drive(self._leasing(until), self._do)

    async def alease(self, until: float | None) -> Lease | None:
        """Return the right to make the queue's writes, as `lease`."""
        return await adrive(self._leasing(until), self._ado)

    def _leasing(self, until: float | None) -> _Script[Lease | None]:
        if until is None:
            return self.try_lease() if self.is_time else None
        # Who holds a lock of the kernel's does not say when it lets go.
        while (lease := self.try_lease()) is None and self._has_time(until):
            yield _Pause()
        return lease

    def try_lease(self) -> Lease | None:
        """Return the right to make the queue's writes; None: somebody has it now."""
        busy = self.queue.busy
        if not busy.acquire(blocking=False):
            return None
        lock = None
        try:
            lock = self.queue.lease()
        except OSError as exc:
            self._faults.note("journal.lease", exc)
        finally:
            if lock is None:
                busy.release()
        return None if lock is None else Lease(lock, busy)

    def release(self, lease: Lease) -> None:
        """Let others have the right."""
        lease.lock.release()
        lease.busy.release()

    def _has_time(self, until: float | None) -> bool:
        # At exit what waits stays for another process: the event of one made now would come late.
        return not is_exiting() and self._clock() < (inf if until is None else until)

    @property
    def is_time(self) -> bool:
        """Whether a write waits and the pause after the last failure is over."""
        return self._clock() >= self.queue.not_before and not self.waits_none

    # -- the script -------------------------------------------------------------------------------

    def _batch(self, until: float | None) -> _Script[bool]:
        """Make the first batch again. Returns whether to go on with the next one."""
        try:
            entries: list[Entry] = yield _Disk(partial(self.journal.take, self.queue))
        except _NotNowError:
            self._pause(None)
            return False
        batch = _Batch()
        for entry in entries:
            if batch.stopped or not self._has_time(until):
                if not entry.in_doubt:
                    batch.untried.append(entry.seq)
            elif entry.is_at_work:
                self._leave(entry, batch)
            else:
                yield from self._make(entry, batch)
        if batch.passed and not batch.answered:
            self._pause(batch.cause)
            batch.stopped = True
        batch.is_down = batch.is_down or bool(batch.unexplained)
        # A write that another process still waits for is at the head: there was nothing to take.
        batch.stopped = batch.stopped or not entries
        if entries or self.queue.settled:
            yield from self._settle(batch)
        return not batch.stopped

    def _settle(self, batch: _Batch) -> _Script[None]:
        names = ("done", "parked", "untried", "flying", "is_down")
        outcome = {name: getattr(batch, name) for name in names}
        outcome["behind"] = () if batch.is_down else batch.behind
        outcome["failed"] = [each.as_failed(is_down=batch.is_down) for each in batch.passed]
        try:
            yield _Disk(partial(self.journal.settle, self.queue, **outcome))
        except _NotNowError:
            batch.stopped = True
        for call in batch.told:
            self._report.report_unawaited(call)
            call.error = None

    def _leave(self, entry: Entry, batch: _Batch) -> None:
        """Note that the store is still at work on *entry*, and may take others meanwhile."""
        touches = UNTOLD
        try:
            if entry.write is not None:
                call = self.calls.call(self.writes, entry.write)
                touches = self.writes.touches(entry.write.method, call.arguments)
        except Exception as exc:  # noqa: BLE001 - nothing goes past it
            self._faults.note("journal.read", exc)
        is_known = self._is_contradicted(entry)
        failed_ns = entry.failed_ns or self._now_ns()
        batch.passed.append(
            _Passed(entry, touches, failed_ns, entry.tries, is_known, is_at_work=True)
        )
        batch.stopped = self._seems_down(batch)

    def _make(self, entry: Entry, batch: _Batch) -> _Script[None]:
        """Make *entry* again, and note in *batch* what became of it."""
        call, touches = self.calls.unread(), UNTOLD
        try:
            if entry.write is None:
                batch.parked.append(Parked(entry, UNREADABLE))
                return
            call = self.calls.call(self.writes, entry.write, may_be_at_fault=entry.tries > 0)
            ORDER_NS.put(call, entry.asked_ns)
            touches = self.writes.touches(entry.write.method, call.arguments)
            if any(each.holds_back(touches) for each in batch.passed):
                batch.behind.append(entry.seq)
                if not entry.in_doubt:
                    batch.untried.append(entry.seq)
                return
            # A call that came later may have gone straight to the store while this one waited.
            later = self.journal.superseded(self.queue, touches, entry.asked_ns)
            if later is not Covered.NO:
                self._give_way(entry, call, batch, whole=later is Covered.YES)
                return
            if (yield from self._is_wanted(entry, entry.write, call)):
                yield from self._ask(entry, entry.write, call)
        except _PassedError as exc:
            self._pass_by(entry, call, touches, batch, exc.__cause__)
        except _NotNowError as exc:
            self._stop(entry, call, batch, exc.__cause__)
        except Exception as exc:  # noqa: BLE001 - it would be no other the next time
            batch.parked.append(Parked(entry, error_name(exc)))
            self._faults.note("journal.parked", exc)
        else:
            self.journal.note_written(self.queue, touches, entry.asked_ns)
            batch.done.append(entry.seq)
            batch.told.append(call)
            call.journal, call.status = Journalled.REPLAYED, Status.OK
            # The pause before the next attempt grows with failures in a row.
            self.queue.failures = 0
            self.journal.note_answer(self.queue)
            batch.note_answer(touches)

    def _give_way(self, entry: Entry, call: Call, batch: _Batch, *, whole: bool) -> None:
        """Leave out a write that a later one of the same record came before."""
        if not whole:
            batch.parked.append(Parked(entry, SUPERSEDED_IN_PART))
            return
        call.journal, call.status = Journalled.SUPERSEDED, Status.OK
        batch.done.append(entry.seq)
        batch.told.append(call)

    def _stop(self, entry: Entry, call: Call, batch: _Batch, cause: BaseException | None) -> None:
        """Note that the store takes nothing now."""
        batch.stopped = True
        batch.is_down = batch.is_down or call.failed
        self._pause(cause)
        # The breaker or the bulkhead refused it, so that the store has not seen it.
        if call.admission is None and not entry.in_doubt:
            batch.untried.append(entry.seq)

    def _is_wanted(self, entry: Entry, write: Write, call: Call) -> _Script[bool]:
        """Look whether the store has a write that is in doubt; leave what it has out of *call*."""
        once = self.writes.once
        if once is None or not entry.in_doubt:
            return True
        question = once.question(write.method, call.arguments, write.id)
        if question is None:
            return True
        asking = self.calls.lookup(call, question.arguments)
        try:
            answer = yield from self._answer(entry, _Store(asking, question.method, write.customer))
        except _NotNowError:
            raise
        except Exception as exc:  # noqa: BLE001 - twice in the store is better than not at all
            self._faults.note("journal.lookup", exc)
            return True
        left = once.left(write.method, call.arguments, answer)
        if left is not None:
            call.arguments = left
        return left is not None

    def _pass_by(
        self,
        entry: Entry,
        call: Call,
        touches: Touches,
        batch: _Batch,
        cause: BaseException | None,
    ) -> None:
        """
        Note that *entry* failed, and perhaps by itself: the next one may tell.

        Where the store seems to be down that is asked of few, and of none until *entry* has waited
        for `ORDERED_S` and been tried `ORDERED_TRIES` times.
        """
        batch.cause = cause
        flies = call.late and not call.ended
        if flies:
            batch.flying.append(entry.seq)
        if call.blame is Blame.STORE:
            is_known = self._is_contradicted(entry)
            since_ns = entry.failed_ns if is_known else None
            failed_ns, tries = since_ns or self._now_ns(), entry.tries + 1
            batch.passed.append(
                _Passed(entry, touches, failed_ns, tries, is_known, is_at_work=flies)
            )
            batch.stopped = self._seems_down(batch)
            return
        tries = 0 if entry.failed_ns is None else entry.tries
        is_odd = isinstance(cause, UnexpectedAnswerError)
        if not batch.passed and cause is not None and (is_odd or not is_of_the_deployment(cause)):
            tries += 1
        batch.passed.append(
            _Passed(entry, touches, self._now_ns(), tries, is_own=True, is_at_work=flies)
        )

    def _seems_down(self, batch: _Batch) -> bool:
        """Tell whether nothing further is to be tried now, since the store seems to be down."""
        down = batch.unexplained
        if not down:
            return False
        # A store on its way back may refuse one write and take the next: in order, at first.
        if not self._has_waited_long(down[0].entry):
            return True
        # What the store is at work on is not tried meanwhile, so that its tries say nothing.
        most = 1 if down[0].is_at_work else min(down[0].tries - ORDERED_TRIES, _MOST_WITNESSES)
        return len(down) > most

    def _now_ns(self) -> int:
        return self.journal.order() or 0

    def _has_waited_long(self, entry: Entry) -> bool:
        return self._now_ns() - entry.asked_ns >= ORDERED_S * 1e9

    def _is_contradicted(self, entry: Entry) -> bool:
        """Tell whether the store has taken another write since *entry* failed by itself."""
        since_ns = entry.failed_ns
        return since_ns is not None and self.journal.has_answered(self.queue, since_ns)

    def _ask(self, entry: Entry, write: Write, call: Call) -> _Script[Any]:
        KEPT.put(call, Kept(entry.seq, write))
        return (yield from self._answer(entry, _Store(call, write.method, write.customer)))

    def _answer(self, entry: Entry, ask: _Store) -> _Script[Any]:
        call = ask.call
        try:
            return (yield ask)
        except BaseException as exc:
            if call.admission is None and isinstance(exc, _NOT_ADMITTED):
                raise _NotNowError from exc
            if call.failed:
                call.blame = self._classify.blame(exc)
            if not call.failed or self._is_hopeless(entry, call):
                raise
            raise _PassedError from exc

    def _is_hopeless(self, entry: Entry, call: Call) -> bool:
        """Tell whether *entry* fails by itself: by its input, beside others, or too often."""
        if call.blame is not Blame.UNKNOWN or entry.failed_ns is None:
            return call.blame is Blame.INPUT
        return entry.tries >= MOST_TRIES - 1 or self._is_contradicted(entry)

    def _pause(self, cause: BaseException | None) -> None:
        queue = self.queue
        pause_s = min(_PAUSE_S * 2**queue.failures, _LONGEST_PAUSE_S)
        asked_s = None if cause is None else retry_after_s(cause)
        queue.failures = min(queue.failures + 1, _MOST_DOUBLINGS)
        queue.not_before = self._clock() + max(pause_s, asked_s or 0.0)

    # -- sync and async ---------------------------------------------------------------------------

    def _do(self, step: _Step) -> Any:
        if isinstance(step, _Pause):
            return time.sleep(_POLL_S)
        if isinstance(step, _Disk):
            try:
                return step.work()
            except OSError as exc:
                raise self._disk_failed(exc) from None
        call, target = step.call, self._target(step.method)
        with _on_behalf(step.customer):
            try:
                for before in call.plan.before:
                    before(call)
                call.result = self._deadline.run(call, lambda given: target(**given))
            except BaseException as exc:  # noqa: BLE001 - the script decides
                call.error = exc
            for after in call.plan.after:
                after(call)
        return _answer_of(call)

    async def _ado(self, step: _Step) -> Any:
        if isinstance(step, _Pause):
            return await asyncio.sleep(_POLL_S)
        if isinstance(step, _Disk):
            try:
                return await self._workers.arun(step.work, KEEP_S)
            except (OSError, Expired) as exc:
                raise self._disk_failed(exc) from None
        call, target = step.call, self._target(step.method, twin=True)
        with _on_behalf(step.customer):
            try:
                for before in call.plan.abefore:
                    if (waits := before(call)) is not None:
                        await waits
                call.result = await self._deadline.arun(call, lambda given: target(**given))
            except BaseException as exc:  # noqa: BLE001 - the script decides
                call.error = exc
            for after in call.plan.aafter:
                try:
                    if (waits := after(call)) is not None:
                        await waits
                except BaseException as exc:  # noqa: BLE001 - cancelled: the other steps still run
                    call.error = exc
        return _answer_of(call)

    def _disk_failed(self, exc: Exception) -> Exception:
        self._faults.note("journal.disk", exc)
        return _NotNowError()

    def _target(self, method: str, *, twin: bool = False) -> Callable[..., Any]:
        writes = self.writes
        return writes.method(writes.client, writes.twin + method if twin else method)


def _answer_of(call: Call) -> Any:
    """Return what the store answered, or raise what it, or a step, raised."""
    if call.error is not None:
        raise call.error
    return call.result


def _on_behalf(customer: str | None) -> AbstractContextManager[object]:
    return context(customer=customer) if customer else nullcontext()
