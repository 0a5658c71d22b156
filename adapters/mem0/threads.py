"""
A loop and threads for ``AsyncMemory``, which is synchronous code behind ``asyncio.to_thread``.

A call that is cancelled at its deadline leaves its thread behind. In the default executor of the
host's loop, which has a handful of them and is waited for at exit, a few hung calls of one store
would stop whatever else the host runs there, and then its exit. So a guarded call's coroutine runs
in a loop of ours, whose threads are as many as the bulkhead lets in and are waited for by nobody.
Nothing of mem0's, of `asyncio` or of the host's loop is replaced for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

from ...memory.guard.call import Call, outer_call
from ...memory.guard.operation import Arguments
from ...memory.guard.step import AsyncInvoke, Invoke
from ...memory.limits.workers import Workers
from ...telemetry.process.fork import reset_after_fork
from ...telemetry.process.fork_lock import ForkLock
from ..toolkit.own_methods import has_own_methods

R = TypeVar("R")

_MEMORY: type[Any] = import_module("mem0").AsyncMemory  # it ships no types


class DaemonExecutor(ThreadPoolExecutor):
    """
    An executor with the threads of `Workers`. A `ThreadPoolExecutor`, since a loop takes no other.

    A guarded call whose work it is given has not ended before that has.
    """

    def __init__(self) -> None:
        super().__init__(1)  # which starts none before it is given work, and is given none
        self._workers = Workers()

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        """
        Have *fn* called on a thread.

        Raises:
            RuntimeError: There is no thread to be had.
        """
        future: Future[R] = Future()
        outer = outer_call()
        let_go = _nothing if outer is None else outer.let_go
        if outer is not None:
            outer.hold()
        try:
            # Held until the work itself has ended, however soon its caller gives up.
            self._workers.submit(partial(_work, future, partial(fn, *args, **kwargs), let_go))
        except RuntimeError:
            let_go()
            raise
        return future


def _nothing() -> None:
    return


def _work(future: Future[R], work: Callable[[], R], let_go: Callable[[], None]) -> None:
    if not future.set_running_or_notify_cancel():
        let_go()
        return
    settle: Callable[[], None]
    try:
        settle = partial(future.set_result, work())
    except BaseException as exc:  # noqa: BLE001 - raised where it is awaited
        settle = partial(future.set_exception, exc)
    let_go()
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody awaits it any more
        settle()


class LoopOfOurs:
    """An event loop on a thread of its own, from the first call on, with a `DaemonExecutor`."""

    def __init__(self) -> None:
        self._starting = ForkLock()
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Start anew: a forked child has no thread that runs the loop."""
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, ask: Callable[[], Awaitable[R]], ended: Callable[[], None]) -> R:
        """
        Return what *ask* comes to, awaited in this loop, in the context of the caller.

        Args:
            ask: Makes the coroutine, on the loop's thread.
            ended: Called when it has ended, or nobody waits for it any more.
        """
        try:
            loop = self._loop or self._started()
            outcome = asyncio.run_coroutine_threadsafe(_outcome(ask), loop)
        except BaseException:
            ended()
            raise
        outcome.add_done_callback(lambda _outcome: ended())
        return (await asyncio.wrap_future(outcome))()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                # The default one has six threads for the whole process: hung searches would block
                # all that is sent to a thread.
                loop.set_default_executor(DaemonExecutor())
                threading.Thread(target=_run, args=(loop,), name="mem0 loop", daemon=True).start()
                self._loop = loop
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        # What a library below mem0 raises to end the process ends its call.
        with contextlib.suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()


async def _outcome(ask: Callable[[], Awaitable[R]]) -> Callable[[], R]:
    """Return what gives the result of *ask*, or raises: a task would end the loop by some."""
    try:
        result = await ask()
    except BaseException as exc:
        task = asyncio.current_task()
        # Only a cancellation from outside: what a library raises itself is its answer.
        if task is not None and task.cancelling():
            raise  # nobody waits for it any more
        return partial(_raise, exc)
    return lambda: result


def _raise(exc: BaseException) -> Any:
    raise exc


_OURS = LoopOfOurs()


def apart(client: Any, ask: Callable[[], Awaitable[R]]) -> Awaitable[R]:
    """
    Return what *ask* comes to, a method of an ``AsyncMemory``: awaited in a loop of ours.

    What a subclass or the object has in place of a method may wait for whatever it likes, in the
    loop that it is called in: that is left there, with the threads that it has there.
    """
    outer = outer_call()
    if outer is None or not isinstance(client, _MEMORY) or has_own_methods(client, _MEMORY):
        return ask()
    outer.hold()
    return _OURS.run(ask, outer.let_go)


class AwaitApart:
    """An `Around` that awaits an ``AsyncMemory``'s coroutines in a loop of ours: see `apart`."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def wrap(self, _call: Call, invoke: Invoke) -> Invoke:
        """Return *invoke*: a synchronous call has a thread already."""
        return invoke

    def awrap(self, _call: Call, invoke: AsyncInvoke) -> AsyncInvoke:
        """Return *invoke*, awaited in a loop of ours."""
        client = self._client
        return invoke if has_own_methods(client, _MEMORY) else partial(_apart, client, invoke)


def _apart(client: Any, invoke: AsyncInvoke, given: Arguments) -> Awaitable[Any]:
    return apart(client, partial(invoke, given))
