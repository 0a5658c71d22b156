"""
Making journalled writes again: in order, once, and not while the store may still be at it.

One script for both colours says what is to be done, step by step; the sync and the async driver
only do it. Before the store is asked a mark goes to the disk, so that a write that was cut off is
known to be in doubt; one in doubt is looked for first, in stores that would take it twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from inspect import iscoroutinefunction
from math import inf
from typing import Any, NamedTuple, TypeAlias

from ...telemetry.event import Journalled, Status
from ..call import Call
from ..context import context
from ..deadline import Expired
from ..guard import Guard, store_failed
from ..policy import LONGEST_S
from ..runtime import Runtime
from .again import Again
from .journal import Journal
from .records import Write
from .shelf import Entry, Queue
from .writes import Writes

HUNG_S = 60.0
"""Seconds after which a call that the store is still at work on is given up. It may land late."""

KEEP_S = 5.0
"""Longest time that a caller waits for the journal's disk."""

_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 5.0
_POLL_S = 0.02


class Kept(NamedTuple):
    """
    A guard's part in the journal.

    Attributes:
        journal: Where writes are kept.
        queue: Where this guard's writes wait.
        writes: What its adapter says of them.
    """

    journal: Journal
    queue: Queue
    writes: Writes


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


class ReplayingGuard(Guard):
    """
    A guard that can make the writes again that wait for its client.

    Args:
        store: As for `Guard`, as are the next four.
        runtime: And its journal, if there is one.
        failed: Tells a store's failure from a caller's mistake.
        serialise: Held around each synchronous call.
        blocks: The client's coroutines are synchronous code.
        writes: What the adapter says of its writes. None: they are not kept.
    """

    def __init__(  # noqa: PLR0913 - keyword-only, but for what every guard has
        self,
        store: str,
        runtime: Runtime,
        *,
        failed: Callable[[BaseException], bool] = store_failed,
        serialise: AbstractContextManager[Any] | None = None,
        blocks: bool = False,
        writes: Writes | None = None,
    ) -> None:
        super().__init__(store, runtime, failed=failed, serialise=serialise, blocks=blocks)
        self._again = Again(runtime)
        self._kept: Kept | None = None
        if runtime.journal is not None and writes is not None:
            queue = runtime.journal.queue(store, writes.client)
            self._kept = Kept(runtime.journal, queue, writes)

    def replay(self, until: float | None = None) -> bool:
        """
        Make the writes that wait again, as far as the store takes them.

        Args:
            until: Monotonic seconds until which to wait for whoever is at it already, and after
                which to stop. None: do not wait, and stop where it is not worth trying yet.

        Returns:
            Whether none waits any more.
        """
        if self._kept is None or not self._may_begin(self._kept, until):
            return self._waits_none()
        try:
            while self._has_time(until) and (script := self._next_script(self._kept)):
                if not self._driven(script):
                    break
        except Exception as exc:  # noqa: BLE001 - an error of ours, and what waits still waits
            self.runtime.faults.note("journal.replay", exc)
        finally:
            self._kept.queue.busy.release()
        return self._waits_none()

    async def areplay(self, until: float | None = None) -> bool:
        """Make the writes that wait again, as `replay`, through the client's coroutines."""
        if self._kept is None or not await self._amay_begin(self._kept, until):
            return self._waits_none()
        try:
            while self._has_time(until) and (script := self._next_script(self._kept)):
                if not await self._adriven(script):
                    break
        except Exception as exc:  # noqa: BLE001 - an error of ours, and what waits still waits
            self.runtime.faults.note("journal.replay", exc)
        finally:
            self._kept.queue.busy.release()
        return self._waits_none()

    async def settle(self, until: float) -> bool:
        """As `areplay`, or as `replay` where the client is called synchronously."""
        if self._kept is None:
            return True
        client, methods = self._kept.writes.client, self._kept.writes.methods
        asynchronous = any(iscoroutinefunction(getattr(client, each, None)) for each in methods)
        return await self.areplay(until) if asynchronous else self.replay(until)

    def _waits_none(self) -> bool:
        return self._kept is None or not self._kept.queue.entries

    def _has_time(self, until: float | None) -> bool:
        return self.runtime.clock() < (inf if until is None else until)

    def _may_begin(self, kept: Kept, until: float | None) -> bool:
        if until is None:
            return self._is_time(kept) and kept.queue.busy.acquire(blocking=False)
        return kept.queue.busy.acquire(timeout=self._left_s(until))

    async def _amay_begin(self, kept: Kept, until: float | None) -> bool:
        if until is None:
            return self._may_begin(kept, until)
        while not kept.queue.busy.acquire(blocking=False):
            if not self._has_time(until):
                return False
            await asyncio.sleep(_POLL_S)
        return True

    def _is_time(self, kept: Kept) -> bool:
        return bool(kept.queue.entries) and self.runtime.clock() >= kept.queue.not_before

    def _left_s(self, until: float) -> float:
        return min(max(0.0, until - self.runtime.clock()), LONGEST_S)

    # -- the script --------------------------------------------------------------------------------

    def _next_script(self, kept: Kept) -> _Script | None:
        entry = kept.journal.head(kept.queue)
        return None if entry is None else self._script(kept, entry)

    def _script(self, kept: Kept, entry: Entry) -> _Script:
        """Make *entry* again. Returns whether to go on with the next one."""
        if self._is_at_work(entry):
            return False
        call = self._again.unread()
        try:
            write: Write = yield _Disk(partial(kept.journal.read, entry))
            call = self._again.call(kept.writes, write)
            if (yield from self._is_wanted(kept, entry, write, call)):
                yield _Disk(partial(kept.journal.attempt, entry))
                ask = _Store(call, write.method, write.customer)
                call.answer = yield from self._asked(entry, ask)
                self._summarise(call, call.answer)
        except _NotNowError:
            self._pause(kept.queue)
            return False
        except Exception as exc:  # noqa: BLE001 - it would be no other the next time
            yield from self._strike(kept, entry, call, exc)
        else:
            yield from self._strike(kept, entry, call)
        kept.queue.failures = 0
        return True

    def _is_wanted(
        self, kept: Kept, entry: Entry, write: Write, call: Call
    ) -> Generator[_Step, Any, bool]:
        """Look whether the store has a write that is in doubt; leave what it has out of *call*."""
        once = kept.writes.once
        if once is None or not entry.in_doubt:
            return True
        question = once.question(write.method, call.arguments, write.id)
        if question is None:
            return True
        asking = call.but(arguments=question.arguments)
        try:
            ask = _Store(asking, question.method, write.customer)
            answer = yield from self._asked(entry, ask)
        except _NotNowError:
            raise
        except Exception as exc:  # noqa: BLE001 - twice in the store is better than not at all
            self.runtime.faults.note("journal.lookup", exc)
            return True
        left = once.left(write.method, call.arguments, answer)
        if left is not None:
            call.arguments = left
        return left is not None

    def _asked(self, entry: Entry, ask: _Store) -> Generator[_Step, Any, Any]:
        call = ask.call
        super()._take_place(call)
        if call.refusal is not None:
            raise _NotNowError
        entry.call = call
        try:
            answer = yield ask
        except BaseException as exc:
            if self._is_failure(exc):
                self._settle(call, failed=True)
                raise _NotNowError from None
            self.breakers[call.method.op_class].release(call.admission)
            raise
        self._settle(call, failed=False)
        return answer

    def _strike(
        self, kept: Kept, entry: Entry, call: Call, exc: Exception | None = None
    ) -> Generator[_Step, Any, None]:
        """Strike *entry* out: the store has it, or will never take it, because of *exc*."""
        if not (yield _Disk(partial(kept.journal.done, entry))):
            return
        call.journal = Journalled.LOST if exc else Journalled.REPLAYED
        self._report.ended(call, Status.ERROR if exc else Status.OK, exc)

    def _is_at_work(self, entry: Entry) -> bool:
        call = entry.call
        if call is None or call.ended:
            return False
        return self.runtime.clock() - call.started < HUNG_S

    def _pause(self, queue: Queue) -> None:
        pause_s = min(_PAUSE_S * 2**queue.failures, _LONGEST_PAUSE_S)
        queue.failures = min(queue.failures + 1, _MOST_DOUBLINGS)
        queue.not_before = self.runtime.clock() + pause_s

    # -- the two colours ---------------------------------------------------------------------------

    def _driven(self, script: _Script) -> bool:
        try:
            step = next(script)
            while True:
                try:
                    answer = self._did(step)
                except BaseException as exc:  # noqa: BLE001 - the script decides
                    step = script.throw(exc)
                else:
                    step = script.send(answer)
        except StopIteration as end:
            return bool(end.value)

    async def _adriven(self, script: _Script) -> bool:
        try:
            step = next(script)
            while True:
                try:
                    answer = await self._adid(step)
                except BaseException as exc:  # noqa: BLE001 - the script decides
                    step = script.throw(exc)
                else:
                    step = script.send(answer)
        except StopIteration as end:
            return bool(end.value)

    def _did(self, step: _Step) -> Any:
        if isinstance(step, _Disk):
            try:
                return step.work()
            except OSError as exc:
                raise self._disk_failed(exc) from None
        target = self._target(step.method)
        with _on_behalf(step.customer):
            return self._reach(step.call, lambda given: target(**given), inline=False)

    async def _adid(self, step: _Step) -> Any:
        if isinstance(step, _Disk):
            try:
                return await self.runtime.workers.arun(step.work, KEEP_S)
            except (OSError, Expired) as exc:
                raise self._disk_failed(exc) from None
        target = self._target(step.method, twin=True)
        with _on_behalf(step.customer):
            return await self._areach(step.call, lambda given: target(**given))

    def _disk_failed(self, exc: Exception) -> Exception:
        self.runtime.faults.note("journal.replay", exc)
        return _NotNowError()

    def _target(self, method: str, *, twin: bool = False) -> Callable[..., Any]:
        assert self._kept is not None  # noqa: S101 - else there is nothing to make again
        writes = self._kept.writes
        target: Callable[..., Any] = getattr(
            writes.client, writes.twin + method if twin else method
        )
        return target


_MOST_DOUBLINGS = 10


def _on_behalf(customer: str | None) -> AbstractContextManager[object]:
    return context(customer=customer) if customer else nullcontext()
