"""
What redaction needs, loaded once a process by a thread of its own: detectors, lists, models.

No call imports or loads: one that comes too early waits within its deadline. A fork waits for the
thread, since a child would inherit its import locks, which nobody there releases.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ....telemetry.process.fork import reset_after_fork
from ....telemetry.process.fork_lock import ForkLock

FORK_WAITS_S = 30.0
"""Longest that a fork waits. The child of one that could wait no longer refuses what it gets."""


class Loading:
    """
    One thing that is loaded in the background. Thread-safe.

    Args:
        load: Loads it. What it raises is `error`, and it is tried again when somebody waits.

    Attributes:
        is_done: It is loaded.
        error: What the last attempt raised.
    """

    def __init__(self, load: Callable[[], None]) -> None:
        self._load = load
        self.is_done = False
        self.error: Exception | None = None
        self._in_progress = ForkLock(FORK_WAITS_S)
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin anew in a child, where the parent's thread does not exist."""
        self._turn = [True]  # its `pop` is atomic: whoever has it starts the thread
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start to load it, unless it is loaded or under way."""
        try:
            if not self.is_done:
                self._turn.pop()
                self._start()
        except IndexError:
            return

    def wait(self, timeout_s: float | None = None) -> bool:
        """
        Return whether it is loaded, after *timeout_s* seconds at most. None: however long it takes.

        False, too, if it could not be loaded: see `error`.
        """
        ended = self._ended  # before an attempt begins that may end at once
        self.begin()
        # What the thread itself calls cannot wait for the thread.
        if not self.is_done and self._thread is not threading.current_thread():
            ended.wait(timeout_s)
        return self.is_done

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="mnemoscope-loading", daemon=True)
        self._thread = thread
        try:
            thread.start()
        except RuntimeError:  # no thread to be had, as when the interpreter ends
            self._run()

    def _run(self) -> None:
        try:
            with self._in_progress:
                self._load()
                self.is_done = True
        except Exception as exc:  # noqa: BLE001 - told to whoever needs it
            self.error = exc
        ended, self._ended = self._ended, threading.Event()
        self._thread = None
        self._turn.append(True)
        ended.set()
