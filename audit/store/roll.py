"""
The roll: a small file for each process that has events to record, for as long as it lives.

It says which writer the process is, how many events it is known to have counted, and how many it
may have: that it writes before it goes beyond. In ``durable`` it says as well up to which event
calls may be over: a later one that is missing was under way. And it is locked: the kernel lets go
of the lock when the process dies, however it dies. So another process of the machine can be certain
that it is gone, and declare what did not get into the log. The file is made with the first event,
before its call returns; a process that ends in order removes it.
"""

from __future__ import annotations

import fcntl
import hmac
import logging
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import NamedTuple

import orjson

from ...telemetry.event.subject import SubjectKeys
from ...telemetry.files.file_lock import is_free
from ...telemetry.process.fork import reset_after_fork
from ..record.keys import Keyring
from .departed import Departed

logger = logging.getLogger("mnemoscope.audit")

AHEAD_FIRST, AHEAD = 8, 256
"""Events that a process may count until it has to write again that it may; few of the first."""

_SIZE_BYTES = 512
_BEING_MADE_S = 60.0


class RollState(NamedTuple):
    """
    Who has an entry.

    Attributes:
        gone: Processes that are gone, of which the log says nothing yet, by writer.
        alive: The writers that are alive.
    """

    gone: dict[str, Departed]
    alive: frozenset[str]


NOBODY = RollState({}, frozenset())


def roll_beside(spool: Path) -> Path:
    """Return where the roll is of processes with that spool."""
    return spool.with_name(f"roll-{spool.name}")


class Roll:
    """
    The entry of this process, and those of processes that are gone. Thread-safe.

    Args:
        path: Entries are beside it, each named after its writer: see `roll_beside`.
        ring: Entries are authenticated with a key of the current secret.
        mode: The durability that this process was asked for.
    """

    def __init__(self, path: Path, ring: Keyring, mode: str = "") -> None:
        self._path = path
        self._ring = ring
        self._mode = mode
        self._fd = -1
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Leave the entry to the parent; a child makes its own with its first event."""
        fd, self._fd = self._fd, -1
        if fd != -1:
            os.close(fd)
        self._lock = RLock()  # a signal handler may make an event while one is granted
        self._counter = self._at_most = self._returned = 0
        self._writer = ""

    def grant(self, writer_id: str, number: int) -> int:
        """
        Let *writer_id* use *number* and some more, which its entry says from now on.

        Where no entry can be made or written, there is none, and it may use them all the same.
        """
        # Doubling: of a process that is killed after ten events at most ten more are in doubt.
        last = number + min(max(number, AHEAD_FIRST), AHEAD) - 1
        with self._lock, suppress(Exception):  # the caller's thread is an application's
            if self._writer != writer_id:
                self._begin(writer_id)
            self._counter = max(self._counter, number)
            self._at_most = max(self._at_most, last)
            self._write()
        return last

    def note(self, counter: int) -> None:
        """Note how many events were counted."""
        with self._lock, suppress(OSError):
            if counter > self._counter:
                self._counter = counter
                self._write()

    def tighten(self, counter: int) -> None:
        """Note that no more than that were counted: each number beyond will be asked for."""
        with self._lock, suppress(OSError):
            if self._counter <= counter < self._at_most:
                self._counter = self._at_most = counter
                self._write()

    def let_return(self, number: int) -> None:
        """Note, before it is so, that the calls of events up to that *number* may be over."""
        with self._lock, suppress(Exception):  # the caller's thread is an application's
            if number > self._returned:
                self._returned = number
                self._counter = max(self._counter, number)
                self._write()

    def end(self, counter: int, *, is_said: bool) -> None:
        """
        End in order, as far as is known: the next number that is granted makes an entry again.

        Args:
            counter: Events that were counted.
            is_said: Whether the log says so. If not, the entry stays, for another process to say.
        """
        with self._lock:
            if self._fd == -1 or (is_said and self._counter > counter):
                return  # one more was counted meanwhile
            with suppress(OSError):
                if is_said:
                    self._of(self._writer).unlink(missing_ok=True)
                    self._counter = self._at_most = self._returned = 0
                    self._writer = ""  # what is counted later has an entry of its own
                else:
                    self._counter = self._at_most = counter
                    self._write(ended=True)
            fd, self._fd = self._fd, -1
            os.close(fd)

    def gone(self) -> Iterator[Departed]:
        """Yield the entries of processes that are gone; each is removed once it was handled."""
        for path in self._paths():
            with _opened(path) as fd:
                if fd is None or not _is_left(fd):
                    continue
                entry = self._read(fd)
                if entry is not None:
                    yield entry
                    path.unlink(missing_ok=True)

    def standing(self) -> RollState:
        """Return whose entries there are, of the living and of those that are gone."""
        gone: dict[str, Departed] = {}
        alive: set[str] = set()
        for path in self._paths():
            with _opened(path) as fd:
                entry = None if fd is None else self._read(fd)
                if fd is None or entry is None:
                    continue
                if _is_left(fd):
                    gone[entry.writer] = entry
                else:
                    alive.add(entry.writer)
        return RollState(gone, frozenset(alive))

    # -- the file ----------------------------------------------------------------------------------

    def _paths(self) -> list[Path]:
        try:
            return sorted(self._path.parent.glob(f"{self._path.name}.*"))
        except OSError:  # no descriptor to be had, say: the next look finds them
            return []

    def _of(self, writer_id: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{writer_id}")

    def _begin(self, writer_id: str) -> None:
        self._writer = writer_id
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self._of(writer_id), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            # By flock and not lockf: a POSIX lock is dropped when any descriptor of the file is
            # closed.
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise
        self._fd = fd

    def _write(self, *, ended: bool = False) -> None:
        written = (-1, -1)
        while self._fd != -1 and written < (end := (self._at_most, self._returned)):
            written = end  # more than once where a signal came in between
            entry = Departed(self._writer, self._counter, end[0], self._mode, ended, end[1])
            body = orjson.dumps([*entry])
            text = b" ".join((self._ring.current_id.encode(), _mac(self._ring.current, body), body))
            # One write of a fixed size below a block: a reader sees the old entry or the new one.
            os.pwrite(self._fd, text.ljust(_SIZE_BYTES), 0)

    def _read(self, fd: int) -> Departed | None:
        text = os.pread(fd, _SIZE_BYTES, 0).rstrip()
        with suppress(ValueError, TypeError):
            return self._authentic(*text.split(b" ", 2)) if text else None
        logger.error(
            "an entry of the roll %s, of a process that is gone, was changed, or written with "
            "another key: what it had counted cannot be told. Remove it to hear no more of it",
            self._of("*"),
        )
        return None

    def _authentic(self, key_id: bytes, mac: bytes, body: bytes) -> Departed:
        keys = self._ring.get(key_id.decode())
        if keys is None or not hmac.compare_digest(mac, _mac(keys, body)):
            raise ValueError(key_id)
        return Departed._make(orjson.loads(body))


def _mac(keys: SubjectKeys, body: bytes) -> bytes:
    return hmac.digest(keys.key("audit/roll"), body, "sha256").hex().encode()


@contextmanager
def _opened(path: Path) -> Generator[int | None]:
    """Return the file at *path*; None where it is gone, or has nothing in it."""
    fd = None
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY)
    if fd is None:
        yield None
        return
    try:
        # What is locked only afterwards by whoever made it is empty until then.
        found = os.fstat(fd)
        if not found.st_size and time.time() - found.st_mtime > _BEING_MADE_S:
            path.unlink(missing_ok=True)  # its process died before it had an event
        yield fd if found.st_size else None
    finally:
        os.close(fd)


def _is_left(fd: int) -> bool:
    """Lock a file; False: its process is alive, or another one has removed it by now."""
    # Between open and lock another may have handled and removed it.
    return is_free(fd) and os.fstat(fd).st_nlink > 0
