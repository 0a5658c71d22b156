"""
Worker threads for synchronous calls with a deadline.

A synchronous client cannot be interrupted, so its call is made on a worker thread and the caller
waits for the deadline at most. A call that hangs keeps its worker, and its place in the bulkhead,
until it returns; what it returns then is reported as late and given to nobody. The default executor
of asyncio is never used: a few hung calls would fill it for the whole process.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

from ...telemetry.process.fork import reset_after_fork

IDLE_S = 30.0
"""Seconds an idle worker stays."""


class Expired(Exception):  # noqa: N818 - a signal between two modules, never seen by a user
    """The deadline passed. The call goes on without its caller."""


class _Job:
    """
    One call in flight between two threads.

    ``claim`` holds one token, and ``list.pop`` is atomic: whoever takes it, the worker with the
    result or the caller that gives up, decides whether the result is delivered or late.

    When its caller goes on, a job holds nothing of the call any more: the worker lets go of it only
    later, and a client that its owner has dropped meanwhile would keep its files locked.
    """

    __slots__ = ("claim", "context", "done", "exc", "fn", "late", "result")

    def __init__(self, fn: Callable[[], Any], late: Callable[[], None]) -> None:
        self.fn = fn
        self.late = late
        self.context = contextvars.copy_context()
        self.claim = [True]
        self.done = threading.Lock()
        self.done.acquire()
        self.result: Any = None
        self.exc: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.context.run(self.fn)
        except BaseException as exc:  # noqa: BLE001 - carried to the caller's thread as it is
            self.exc = exc
        del self.fn, self.context

    def publish(self) -> None:
        if self._claimed():
            del self.late
            self.done.release()
        else:
            self.late()

    def abandon(self) -> bool:
        """Give up waiting. False when the result came at the last moment."""
        return self._claimed()

    def _claimed(self) -> bool:
        try:
            return self.claim.pop()
        except IndexError:
            return False

    def answer(self) -> Any:
        if self.exc is None:
            result, self.result = self.result, None
            return result
        try:
            raise self.exc
        finally:
            self.exc = None  # an exception that holds its frame holds the job: a cycle


class _LoopJob(_Job):
    """A call that a coroutine waits for."""

    __slots__ = ("_loop", "ended")

    def __init__(self, fn: Callable[[], Any], late: Callable[[], None]) -> None:
        import asyncio  # noqa: PLC0415 - a tenth of the time to configure a scope

        super().__init__(fn, late)
        self._loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()

    def publish(self) -> None:
        try:
            if self._claimed():
                self._loop.call_soon_threadsafe(self._wake)
                return
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more
        self.late()

    def _wake(self) -> None:
        del self.late
        self.ended.set()


class _Worker:
    """A thread that runs one job at a time and goes when it was idle for long."""

    __slots__ = ("_go", "_idle", "_job")

    def __init__(self, idle: deque[_Worker]) -> None:
        self._idle = idle
        self._job: _Job | None = None
        # As a signal: one thread waits for it, another releases it, which no RLock allows.
        self._go = threading.Lock()
        self._go.acquire()

    def start(self) -> None:
        # A daemon: a store that hangs must not hold up the end of the process.
        threading.Thread(target=self._run, name="mnemoscope-worker", daemon=True).start()

    def hand(self, job: _Job | None) -> None:
        self._job = job
        self._go.release()

    def _run(self) -> None:
        while self._go.acquire(timeout=IDLE_S) or not self._leaves():
            job, self._job = self._job, None
            if job is None:
                return
            job.run()
            # Idle before the caller wakes: its next call finds this worker, not a new thread.
            self._idle.append(self)
            job.publish()
            del job  # else an idle thread holds the last call's result for as long as it waits

    def _leaves(self) -> bool:
        try:
            self._idle.remove(self)
        except ValueError:
            self._go.acquire()  # taken a moment ago: its job is being handed over
            return False
        return True


class Workers:
    """
    A pool of threads for calls with a deadline. It grows as needed and shrinks when idle.

    How many calls may be in flight is the bulkhead's decision, not made here: a pool with a bound
    of its own would make one hung store starve another.
    """

    def __init__(self) -> None:
        self._idle: deque[_Worker] = deque()
        # With the queue and not with a method, which would hold the pool for ever.
        weakref.finalize(self, _dismiss, self._idle)
        reset_after_fork(self)

    def run(self, fn: Callable[[], Any], timeout_s: float, late: Callable[[], None]) -> Any:
        """
        Call *fn* in a copy of this context and wait *timeout_s* seconds for it.

        Args:
            fn: The call. Its result is returned, its exception raised, as the same object.
            timeout_s: Seconds to wait.
            late: Called on the worker when *fn* ends after its caller has gone.

        Raises:
            Expired: *fn* still runs.
        """
        job = _Job(fn, late)
        try:
            if not self._handed(job):
                return fn()  # no thread to be had: slow is better than broken
            if job.done.acquire(timeout=timeout_s):
                return job.answer()
        except BaseException:
            job.abandon()
            raise
        if job.abandon():
            raise Expired
        # The worker has claimed the job between the two: its result is there in a moment.
        job.done.acquire()
        return job.answer()

    async def acall(
        self, fn: Callable[[], Any], timeout_s: float | None, late: Callable[[], None]
    ) -> Any:
        """
        Call *fn* as `run` does, without blocking the event loop.

        A caller that is cancelled goes at once; *fn* goes on, and what it brings is late.

        Raises:
            Expired: *fn* still runs.
        """
        import asyncio  # noqa: PLC0415

        job = _LoopJob(fn, late)
        if not self._handed(job):
            return fn()
        try:
            async with asyncio.timeout(timeout_s):
                await job.ended.wait()
        except TimeoutError:
            if job.abandon():
                raise Expired from None
        except BaseException:
            if not job.abandon():
                late()
            raise
        return job.answer()

    async def arun(self, fn: Callable[[], Any], timeout_s: float) -> Any:
        """
        Call *fn* as `run` does, without blocking the event loop.

        A caller that is cancelled meanwhile is so when *fn* has ended: it is short, and half of it
        is worth nothing.

        Raises:
            Expired: *fn* still runs.
        """
        import asyncio  # noqa: PLC0415

        made = asyncio.ensure_future(self.acall(fn, timeout_s, _nothing))
        cancelled = None
        while not made.done():
            try:
                await asyncio.wait({made})
            except asyncio.CancelledError as exc:
                cancelled = exc
        if cancelled is not None:
            made.exception()  # seen: it is nobody's any more
            raise cancelled
        return made.result()

    def submit(self, fn: Callable[[], Any]) -> None:
        """
        Call *fn*, which never raises, in a copy of this context, and wait for nothing.

        Raises:
            RuntimeError: There is no thread to be had.
        """
        if not self._handed(_Job(fn, _nothing)):
            raise RuntimeError("can't start new thread")

    def _handed(self, job: _Job) -> bool:
        if sys.is_finalizing():
            return False  # the idle threads are there, and will never run again
        try:
            self._worker().hand(job)
        except RuntimeError:
            return False
        return True

    def _worker(self) -> _Worker:
        try:
            return self._idle.pop()
        except IndexError:
            worker = _Worker(self._idle)
            worker.start()
            return worker

    def forked(self) -> None:
        """Forget, in a forked child, the threads that only the parent has."""
        self._idle.clear()


def driven(steps: Generator[Any, Any, Any]) -> Any:
    """
    Run to its end, on this thread and without a loop, a coroutine that waits for nothing.

    Args:
        steps: From its ``__await__``.

    Raises:
        RuntimeError: It does wait for something.
    """
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    steps.close()
    raise RuntimeError("a coroutine that was to be synchronous code waits for its loop")


def _nothing() -> None:
    return


def _dismiss(idle: deque[_Worker]) -> None:
    with contextlib.suppress(IndexError):  # empty
        while True:
            idle.pop().hand(None)
