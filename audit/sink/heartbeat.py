"""A thread for what is due although no event comes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from ...telemetry.delivery.lane import delivering
from ...telemetry.process.fork import reset_after_fork


class Heartbeat:
    """
    A daemon thread that calls *beat* every so many seconds, from `start` to `stop`.

    Args:
        every_s: Seconds between.
    """

    def __init__(self, beat: Callable[[], None], every_s: float) -> None:
        self._beat = beat
        self._every_s = every_s
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        reset_after_fork(self)

    def start(self, *, at_once: bool = False) -> None:
        """Start the thread, if it does not run; *at_once*: the first beat is due now."""
        if self._thread is not None or self._stopping.is_set():
            return
        name = "mnemoscope-audit-heartbeat"
        self._thread = threading.Thread(target=self._run, args=(at_once,), name=name, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # no thread to be had just now: with the next event, perhaps
            self._thread = None

    def stop(self, timeout_s: float) -> None:
        """Stop the thread, and wait for it that long. It can be started again."""
        thread, self._thread = self._thread, None
        self._stopping.set()
        # A beat may end the sink, and cannot wait for itself.
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_s)
        # Another one: the thread that was told to stop may still have to see that it was.
        self._stopping = threading.Event()

    def forked(self) -> None:
        """Begin anew in a child."""
        self._thread = None
        self._stopping = threading.Event()

    def _run(self, at_once: bool) -> None:  # noqa: FBT001 - a thread's
        stopping = self._stopping
        with delivering():
            while not stopping.wait(0.0 if at_once else self._every_s):
                at_once = False
                # The beat tells of its errors itself; the thread has to be there for the next one.
                with contextlib.suppress(Exception):
                    self._beat()
