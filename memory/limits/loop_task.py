"""
Work of ours on an event loop of the application's, which may close at any moment.

A task that a loop leaves behind as it closes is told as an error of the application's, and a
coroutine that never began as another. Neither is: what was to be done is done on the next loop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import asyncio  # a tenth of the time to configure a scope

Work: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]


class LoopTask:
    """A coroutine that runs on one event loop at a time, until it ends or the loop does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempt: _Attempt | None = None

    def begin(self, loop: asyncio.AbstractEventLoop, work: Work) -> None:
        """
        Run *work* on *loop*, from any thread, unless it runs already or waits for its turn.

        What a loop left behind when it ended is closed first: it may hold a lock.
        """
        with self._lock:
            last = self._attempt
            if last is not None and not last.ended.is_set():
                if last.may_go_on(loop):
                    return
                last.close()
            self._attempt = attempt = _Attempt(loop, work)
        try:
            # A context of its own: none of this is part of the call that happens to come first.
            loop.call_soon_threadsafe(attempt.start, context=Context())
        except RuntimeError:  # it was closed just now
            attempt.close()

    def run(self, loop: asyncio.AbstractEventLoop, work: Work, timeout_s: float) -> None:
        """Run *work* on *loop*, after what runs already, and wait for it: not on that loop."""
        until = time.monotonic() + timeout_s
        self._wait(until)
        self.begin(loop, work)
        self._wait(until)

    @staticmethod
    def begin_part(context: Context, work: Work) -> asyncio.Task[Any]:
        """Begin *work*, a part of what such a task does, on the loop that runs, in *context*."""
        import asyncio  # noqa: PLC0415

        return _Attempt(asyncio.get_running_loop(), work).start(context)

    def _wait(self, until: float) -> None:
        if (attempt := self._attempt) is not None:
            attempt.ended.wait(max(0.0, until - time.monotonic()))


class _Attempt(Coroutine[Any, Any, None]):
    """A coroutine that is made as it begins, and may be closed when its loop has ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Work) -> None:
        self.ended = threading.Event()
        self._loop = loop
        self._work = work
        self._running: Coroutine[Any, Any, Any] | None = None

    def may_go_on(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Tell whether its loop may run it yet, if *loop* is the one in use."""
        return self._loop.is_running() or (self._loop is loop and not loop.is_closed())

    def start(self, context: Context | None = None) -> asyncio.Task[Any]:
        task = self._loop.create_task(self, context=context)
        with suppress(AttributeError):  # a loop with tasks of its own kind
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
        return task

    def send(self, value: Any, /) -> Any:
        if self.ended.is_set():
            raise StopIteration
        if self._running is None:
            self._running = self._work()
        return self._step(self._running.send, value)

    def throw(self, *raised: Any) -> Any:
        if self._running is None or self.ended.is_set():
            self.ended.set()
            raise raised[0]
        return self._step(self._running.throw, *raised)

    def close(self) -> None:
        self.ended.set()
        if self._running is not None:
            with suppress(ValueError):  # it runs: its loop came back to life
                self._running.close()

    def __await__(self) -> Generator[Any, Any, None]:
        raise TypeError("it is given to a task, which sends to it")

    def _step(self, step: Callable[..., Any], *given: Any) -> Any:
        try:
            return step(*given)
        except BaseException:
            self.ended.set()
            raise
