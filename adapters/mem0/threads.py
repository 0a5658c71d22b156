"""
Threads for ``AsyncMemory``, which is synchronous code behind ``asyncio.to_thread``.

A call that is cancelled at its deadline leaves its thread behind. In asyncio's default executor,
which has a handful of them and is waited for at exit, a few hung calls of one store would stop
whatever else the host runs there, and then its exit. So inside a guarded call mem0 is given threads
of ours: as many as the bulkhead lets in, and waited for by nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from ...memory.guard.call import outer_call
from ...telemetry.process.fork import reset_after_fork

R = TypeVar("R")

IDLE_S = 30.0
"""Seconds an idle thread stays."""


class DaemonThreads:
    """Daemon threads that start as needed and end when idle for `IDLE_S`."""

    def __init__(self) -> None:
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Start anew: a forked child has none of the threads."""
        self._jobs: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)

    def submit(self, job: Callable[[], object]) -> None:
        """
        Have *job*, which never raises, called on a thread.

        Raises:
            RuntimeError: There is no thread to be had.
        """
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._work, args=(job,), name="mem0", daemon=True).start()
            return
        self._jobs.put(job)

    def _work(self, job: Callable[[], object] | None) -> None:
        jobs, idle = self._jobs, self._idle
        while job is not None:
            job()
            job = None  # what it holds is not kept alive by an idle thread
            idle.release()
            with contextlib.suppress(queue.Empty):
                job = jobs.get(timeout=IDLE_S)
                continue
            if not idle.acquire(blocking=False):
                job = jobs.get()  # counted upon a moment ago: its job is on its way


class GuardedAsyncio:
    """Stand-in for the module `asyncio` inside mem0: the same, but for `to_thread`."""

    def __init__(self) -> None:
        object.__setattr__(self, "_threads", DaemonThreads())

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(asyncio, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(asyncio, name)

    async def to_thread(self, func: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:
        """Call *func* on a thread: inside a guarded call on one that is not waited for at exit."""
        bound, context = partial(func, *args, **kwargs), copy_context()

        def call() -> R:
            return context.run(bound)

        if (outer := outer_call()) is None:
            return await asyncio.to_thread(call)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        outer.hold()
        try:
            self._threads.submit(partial(_answer, loop, future, call, outer.let_go))
        except RuntimeError:
            outer.let_go()
            return await asyncio.to_thread(call)
        return await future


def _answer(
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[R],
    call: Callable[[], R],
    let_go: Callable[[], None],
) -> None:
    settle: Callable[[], None]
    try:
        settle = partial(_settle, future, future.set_result, call())
    except BaseException as exc:  # noqa: BLE001 - raised where it is awaited
        settle = partial(_settle, future, future.set_exception, exc)
    let_go()
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody awaits it any more
        loop.call_soon_threadsafe(settle)


def _settle(future: asyncio.Future[R], set_it: Callable[[Any], None], value: Any) -> None:
    if not future.done():
        set_it(value)
