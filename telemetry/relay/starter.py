"""
A relay that is started for applications, and ends behind the last of them.

Each application shares a lock on one file while it lives. The right to read the folder is another
one: whoever starts a relay takes it first and hands it over, so that one does.
"""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from ..files.file_lock import FileLock, try_lock
from ..process.fork_lock import ForkLock
from ..queue.folder import files_in
from .feed import Feed
from .folder import LOCK_NAME, SILENT_AFTER_S, silent_s

logger = logging.getLogger("mnemoscope.relay")

PATIENCE_S = 60.0
"""Seconds without progress after which a relay without applications leaves the rest in files."""

_LOOK_NS = 20_000_000_000
_STARTING = ForkLock()

_CODE = """
import json, os, sys
if os.fork():
    os._exit(0)  # no application has a child that it did not start
said = json.load(sys.stdin.buffer)
sys.path[:] = said["path"]
from mnemoscope.memory.relay_process import serve
serve(said, sys.argv[1], int(sys.argv[2]))
"""


class RelayStarter:
    """
    Starts the relay of *folder* where none runs, and another one when it has died.

    Its environment is *variables*, and its settings a *message* of JSON, which nobody can see.

    Raises:
        OSError: No process can be started here.
    """

    def __init__(self, folder: Path, message: bytes, variables: Mapping[str, str]) -> None:
        self._folder = folder
        self._message = message
        self._variables = variables
        self._due_ns = time.time_ns() + _LOOK_NS
        self._has_died = False
        fd = _opened(folder)
        # A forked child has it as well: it needs the relay for as long as it lives.
        self.close = weakref.finalize(self, os.close, fd)
        until = time.monotonic() + 0.1
        # Before a relay is looked for: one that is there stays from now on.
        while not _locked(fd, fcntl.LOCK_SH):
            if time.monotonic() > until:
                raise OSError(f"the relay of {folder} is stopped while it ends")
            time.sleep(0.005)
        self._start()

    def look(self, now_ns: int) -> None:
        """Have a thread start a relay if the last one has died. *now_ns* is since 1970."""
        # A clock that was ahead for one event does not put off the next look by as much.
        if 0 < self._due_ns - now_ns <= _LOOK_NS:
            return
        self._due_ns = now_ns + _LOOK_NS
        silence_s = silent_s(self._folder)
        if silence_s is None or silence_s > SILENT_AFTER_S:
            with suppress(RuntimeError):  # no thread to be had: the next look tries again
                threading.Thread(target=self._start_again, daemon=True).start()

    def _start_again(self) -> None:
        with suppress(OSError):
            if self._start() and not self._has_died:
                self._has_died = True
                logger.warning("the relay of %s has died: another one starts", self._folder)

    def _start(self) -> bool:
        """Start the process, with the folder's lock; return False if there is one."""
        with _STARTING:  # a child that is forked meanwhile would hold the lock
            lock = try_lock(self._folder / LOCK_NAME)
            if lock is None:
                return False
            try:
                started = subprocess.Popen(  # noqa: S603 - this interpreter, and our own code
                    [sys.executable, "-P", "-c", _CODE, str(self._folder), str(lock.fileno())],
                    env=self._variables,
                    cwd=self._folder,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(lock.fileno(),),
                    start_new_session=True,
                )
                threading.Thread(target=started.wait, daemon=True).start()
                with cast("IO[bytes]", started.stdin) as pipe:
                    pipe.write(self._message)
            except (RuntimeError, subprocess.SubprocessError) as exc:
                raise OSError(f"no process can be started ({type(exc).__name__})") from exc
            finally:
                lock.release()
        return True


class Attendance:
    """Decides when a relay ends that was started for applications, and holds *lock* as it does."""

    def __init__(self, folder: Path, lock: FileLock) -> None:
        self._folder = folder
        self._lock = lock
        self._fd = _opened(folder)
        self._left: tuple[int, int] | None = None
        self._moved_at = 0.0

    def is_over(self, feeds: Iterable[Feed], now: float) -> bool:
        """Return whether no application is there, and all is delivered or nothing moves."""
        if not _locked(self._fd, fcntl.LOCK_EX):
            self._left = None
            return False
        try:
            # Behind the lock: an application that came and went before it may have left files.
            left = len(files_in(self._folder)), sum(each.behind_bytes() for each in feeds)
            if left != self._left:
                self._left, self._moved_at = left, now
            if left[0] and now - self._moved_at < PATIENCE_S:
                return False
            # Before an application can come again: it finds the folder free, and starts the next.
            self._lock.release()
            return True
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)


def _opened(folder: Path) -> int:
    return os.open(folder / "applications.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _locked(fd: int, kind: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
        return True
    return False
