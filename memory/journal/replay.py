"""
Replay of journalled writes, in order and once each.

One script, for sync and async, says what is to be done, step by step; two drivers do it. Before
the store is asked a mark goes to the disk, so that a write that was cut off is known to be in
doubt; one in doubt is looked for first, in stores that would take it twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from inspect import iscoroutinefunction
from math import inf
from typing import Any, NamedTuple, TypeAlias

from ...telemetry.event.event import Journalled, Status
from ...telemetry.process.faults import Faults
from ..context import context
from ..errors import StoreUnavailableError
from ..guard.call import Call
from ..guard.outages import is_of_the_deployment, is_outage
from ..guard.steps.admit import Admit
from ..guard.steps.classify import Classify
from ..guard.steps.deadline import Deadline
from ..guard.steps.report import Report
from ..limits.policy import LONGEST_S
from ..limits.workers import Expired, Workers
from .journal import Journal
from .journal_file import Entry, Queue
from .records import Write
from .replayed_call import ReplayedCalls
from .writes import JournalledWrites

HUNG_S = 60.0
"""Seconds after which a call that the store is still at work on is given up. It may land late."""

KEEP_S = 5.0
"""Longest time that a caller waits for the journal's disk."""

MOST_TRIES = 8
"""Tries after which a write is given up that fails by itself: it would hold up all that follow."""

_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 5.0
_POLL_S = 0.02


class _Disk(NamedTuple):
    work: Callable[[], Any]


class _Store(NamedTuple):
    call: Call
    method: str
    customer: str | None


_Step: TypeAlias = _Disk | _Store
_Script: TypeAlias = Generator[_Step, Any, bool]


class _NotNowError(Exception):
    """The store does not take it yet."""


class Replay:
    """
    Makes the writes of one client again that wait in the journal.

    Args:
        journal: Where they wait.
        queue: Which of them are this client's.
        writes: What its adapter says of them.
        calls: Makes calls of them.
        admit: Asks breaker and bulkhead.
        deadline: Calls the store.
        classify: Tells a failure of the store, and reads its answers.
        report: Emits the event of each.
        workers: Threads for the journal's disk.
        faults: Where errors of our own are noted.
        clock: Monotonic seconds.

    Attributes:
        journal: As given, as are `queue`, `writes` and `calls`.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        queue: Queue,
        writes: JournalledWrites,
        calls: ReplayedCalls,
        admit: Admit,
        deadline: Deadline,
        classify: Classify,
        report: Report,
        workers: Workers,
        faults: Faults,
        clock: Callable[[], float],
    ) -> None:
        self.journal = journal
        self.queue = queue
        self.writes = writes
        self.calls = calls
        self._admit = admit
        self._deadline = deadline
        self._classify = classify
        self._report = report
        self._workers = workers
        self._faults = faults
        self._clock = clock
        self._odd: Entry | None = None
        self._tries = 0

    def replay(self, until: float | None = None) -> bool:
        """
        Make the writes that wait again, as far as the store takes them.

        Args:
            until: Monotonic seconds until which to wait for whoever is at it already, and after
                which to stop. None: do not wait, and stop where it is not worth trying yet.

        Returns:
            Whether none waits any more.
        """
        if not self._may_begin(until):
            return self.waits_none
        try:
            while self._has_time(until) and (script := self._next_script()):
                if not self._drive(script):
                    break
        except Exception as exc:  # noqa: BLE001 - an error of ours, and what waits still waits
            self._faults.note("journal.replay", exc)
        finally:
            self.queue.busy.release()
        return self.waits_none

    async def areplay(self, until: float | None = None) -> bool:
        """Make the writes that wait again, as `replay`, through the client's coroutines."""
        if not await self._amay_begin(until):
            return self.waits_none
        try:
            while self._has_time(until) and (script := self._next_script()):
                if not await self._adrive(script):
                    break
        except Exception as exc:  # noqa: BLE001 - an error of ours, and what waits still waits
            self._faults.note("journal.replay", exc)
        finally:
            self.queue.busy.release()
        return self.waits_none

    async def settle(self, until: float) -> bool:
        """As `areplay`, or as `replay` where the client is called synchronously."""
        client, methods = self.writes.client, self.writes.methods
        asynchronous = any(iscoroutinefunction(getattr(client, each, None)) for each in methods)
        return await self.areplay(until) if asynchronous else self.replay(until)

    @property
    def waits_none(self) -> bool:
        """Whether no write waits for the client."""
        return not self.queue.entries

    def _has_time(self, until: float | None) -> bool:
        return self._clock() < (inf if until is None else until)

    def _may_begin(self, until: float | None) -> bool:
        if until is None:
            return self.is_time and self.queue.busy.acquire(blocking=False)
        return self.queue.busy.acquire(timeout=self._left_s(until))

    async def _amay_begin(self, until: float | None) -> bool:
        if until is None:
            return self._may_begin(until)
        while not self.queue.busy.acquire(blocking=False):
            if not self._has_time(until):
                return False
            await asyncio.sleep(_POLL_S)
        return True

    @property
    def is_time(self) -> bool:
        """Whether a write waits and the pause after the last failure is over."""
        return bool(self.queue.entries) and self._clock() >= self.queue.not_before

    def _left_s(self, until: float) -> float:
        return min(max(0.0, until - self._clock()), LONGEST_S)

    # -- the script --------------------------------------------------------------------------------

    def _next_script(self) -> _Script | None:
        entry = self.journal.head(self.queue)
        return None if entry is None else self._script(entry)

    def _script(self, entry: Entry) -> _Script:
        """Make *entry* again. Returns whether to go on with the next one."""
        if self._is_at_work(entry):
            return False
        call = self.calls.unread()
        try:
            write: Write = yield _Disk(partial(self.journal.read, entry))
            call = self.calls.call(self.writes, write)
            if (yield from self._is_wanted(entry, write, call)):
                yield _Disk(partial(self.journal.attempt, entry))
                ask = _Store(call, write.method, write.customer)
                call.result = yield from self._ask(entry, ask)
                self._classify.summarise(call)
        except _NotNowError:
            self._pause()
            return False
        except Exception as exc:  # noqa: BLE001 - it would be no other the next time
            yield from self._strike(entry, call, exc)
        else:
            yield from self._strike(entry, call)
        self.queue.failures = 0
        return True

    def _is_wanted(self, entry: Entry, write: Write, call: Call) -> Generator[_Step, Any, bool]:
        """Look whether the store has a write that is in doubt; leave what it has out of *call*."""
        once = self.writes.once
        if once is None or not entry.in_doubt:
            return True
        question = once.question(write.method, call.arguments, write.id)
        if question is None:
            return True
        asking = call.but(arguments=question.arguments)
        try:
            ask = _Store(asking, question.method, write.customer)
            answer = yield from self._ask(entry, ask)
        except _NotNowError:
            raise
        except Exception as exc:  # noqa: BLE001 - twice in the store is better than not at all
            self._faults.note("journal.lookup", exc)
            return True
        left = once.left(write.method, call.arguments, answer)
        if left is not None:
            call.arguments = left
        return left is not None

    def _ask(self, entry: Entry, ask: _Store) -> Generator[_Step, Any, Any]:
        call = ask.call
        try:
            admitted = self._admit.try_place(call)
        except StoreUnavailableError:
            admitted = False
        if not admitted:
            raise _NotNowError
        entry.call = call
        try:
            answer = yield ask
        except BaseException as exc:
            call.error, call.failed = exc, self._classify.is_failure(exc)
            self._admit.settle(call)
            if call.failed and not self._is_hopeless(entry, exc):
                raise _NotNowError from None
            raise
        self._admit.settle(call)
        return answer

    def _is_hopeless(self, entry: Entry, exc: BaseException) -> bool:
        """Tell whether *entry* alone fails, with what no outage is, and has failed often enough."""
        if is_outage(exc) or is_of_the_deployment(exc) or not isinstance(exc, Exception):
            return False
        self._tries = self._tries + 1 if self._odd is entry else 1
        self._odd = entry
        return self._tries >= MOST_TRIES

    def _strike(
        self, entry: Entry, call: Call, exc: Exception | None = None
    ) -> Generator[_Step, Any, None]:
        """Strike *entry* out: the store has it, or will never take it, because of *exc*."""
        if not (yield _Disk(partial(self.journal.done, entry))):
            return
        call.journal = Journalled.LOST if exc else Journalled.REPLAYED
        call.error, call.status = exc, Status.ERROR if exc else Status.OK
        self._report.report(call)
        call.error = None

    def _is_at_work(self, entry: Entry) -> bool:
        call = entry.call
        if call is None or call.ended:
            return False
        return self._clock() - call.started < HUNG_S

    def _pause(self) -> None:
        queue = self.queue
        pause_s = min(_PAUSE_S * 2**queue.failures, _LONGEST_PAUSE_S)
        queue.failures = min(queue.failures + 1, _MOST_DOUBLINGS)
        queue.not_before = self._clock() + pause_s

    # -- sync and async ----------------------------------------------------------------------------

    def _drive(self, script: _Script) -> bool:
        try:
            step = next(script)
            while True:
                try:
                    answer = self._do(step)
                except BaseException as exc:  # noqa: BLE001 - the script decides
                    step = script.throw(exc)
                else:
                    step = script.send(answer)
        except StopIteration as end:
            return bool(end.value)

    async def _adrive(self, script: _Script) -> bool:
        try:
            step = next(script)
            while True:
                try:
                    answer = await self._ado(step)
                except BaseException as exc:  # noqa: BLE001 - the script decides
                    step = script.throw(exc)
                else:
                    step = script.send(answer)
        except StopIteration as end:
            return bool(end.value)

    def _do(self, step: _Step) -> Any:
        if isinstance(step, _Disk):
            try:
                return step.work()
            except OSError as exc:
                raise self._disk_failed(exc) from None
        target = self._target(step.method)
        with _on_behalf(step.customer):
            return self._deadline.run(step.call, lambda given: target(**given))

    async def _ado(self, step: _Step) -> Any:
        if isinstance(step, _Disk):
            try:
                return await self._workers.arun(step.work, KEEP_S)
            except (OSError, Expired) as exc:
                raise self._disk_failed(exc) from None
        target = self._target(step.method, twin=True)
        with _on_behalf(step.customer):
            return await self._deadline.arun(step.call, lambda given: target(**given))

    def _disk_failed(self, exc: Exception) -> Exception:
        self._faults.note("journal.replay", exc)
        return _NotNowError()

    def _target(self, method: str, *, twin: bool = False) -> Callable[..., Any]:
        writes = self.writes
        return writes.method(writes.client, writes.twin + method if twin else method)


_MOST_DOUBLINGS = 10


def _on_behalf(customer: str | None) -> AbstractContextManager[object]:
    return context(customer=customer) if customer else nullcontext()
