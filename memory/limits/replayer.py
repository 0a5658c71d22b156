"""
The thread that replays journalled writes.

There is none until a client is wrapped whose writes can wait, and none once all such clients are
gone; in a forked child, none until such a client is called. It polls: neither a store says when it
is back, nor another process when it has died.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol

from ...telemetry.process.exit_deadline import before_delivery
from ...telemetry.process.faults import Faults
from ...telemetry.process.fork import reset_after_fork

POLL_S = 0.25


class Replaying(Protocol):
    """A guard that makes writes again."""

    def replay(self) -> bool:
        """Make them again, as far as the store takes them. Returns whether none waits any more."""
        ...


class Replayer:
    """
    One thread for all guards of a scope.

    Args:
        faults: Where its own errors are noted.
        wait: Waits so many seconds, or until it is told to stop. None: an event of its own does.
    """

    def __init__(self, faults: Faults, wait: Callable[[float], object] | None = None) -> None:
        self._faults = faults
        self._given_wait = wait
        _alive.add(self)
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin anew: the thread is the parent's, and so is what it works at."""
        self._lock = threading.RLock()
        self._guards: weakref.WeakSet[Replaying] = weakref.WeakSet()
        self._always: weakref.WeakSet[Replaying] = weakref.WeakSet()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._wait = self._given_wait or self._stop.wait

    def watch(self, guard: Replaying) -> None:
        """Make *guard*'s writes again until none waits."""
        with self._lock:
            self._guards.add(guard)
            if self._thread is None:
                self._start()

    def watch_always(self, guard: Replaying) -> None:
        """Make *guard*'s writes again for as long as it lives: others may add to them."""
        self._always.add(guard)
        self.watch(guard)

    def _start(self) -> None:
        self._stop.clear()
        thread = threading.Thread(target=self._run, name="mnemoscope-replay", daemon=True)
        try:
            thread.start()
        except RuntimeError as exc:
            self._faults.note("journal.thread", exc)  # the next call tries again
        else:
            self._thread = thread

    def round(self) -> bool:
        """Ask every guard once. Returns whether anything still waits."""
        for guard in list(self._guards):
            if self._is_done(guard) and guard not in self._always:
                self._guards.discard(guard)
        return bool(self._guards)

    def _is_done(self, guard: Replaying) -> bool:
        try:
            return guard.replay()
        except OSError as exc:
            self._faults.note("journal.look", exc)  # whether anything waits cannot be told
            return False

    def close(self, timeout_s: float) -> None:
        """End the thread, when it has finished what it is at; what waits stays in the journal."""
        with self._lock:
            self._stop.set()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_s)

    def _run(self) -> None:
        while self._goes_on():
            self._wait(POLL_S)

    def _goes_on(self) -> bool:
        waits = self.round()
        with self._lock:
            # Looked at again: a guard may have been added since.
            if (waits or self._guards) and not self._stop.is_set():
                return True
            self._thread = None
            self._stop.clear()
            return False


_alive: weakref.WeakSet[Replayer] = weakref.WeakSet()


def _end_all(timeout_s: float) -> None:
    """End all replays: of a write that a store has just taken the sinks must get the event."""
    until = time.monotonic() + timeout_s
    for each in list(_alive):
        each.close(max(0.0, until - time.monotonic()))


before_delivery(_end_all)
