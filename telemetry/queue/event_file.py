"""
A file that a process appends its events to: mapped into its memory, and read by another.

An append copies a record into the map: no call of the system, and what was copied is there when the
process is killed. A page is for what is known of the file; records follow, framed and checked as in
every file of records (see `framing`), each encrypted with a key of its writer's. Room is taken from
the disk before it is written to, a piece at a time: a full disk is an error and not a signal.

A process has two files at most. When one is full it begins the next, unless the reader still needs
the one before.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from ..files.framing import header, new_marker, record
from ..files.mapped_file import allocate, map_file

KIND = b"mnrelay"
SUFFIX = ".events"
PAGE_BYTES = 4_096
"""Before the records: header, the record of `FileHead`, and `FileState` at the end."""

HEAD_AT = 64
STATE_AT = PAGE_BYTES - 64
STATE = Struct("@QQQQ")  # native: each number is stored whole, whenever the process is killed
_PIECE_BYTES = 1024 * 1024


class FileState(NamedTuple):
    """
    What a writer says of its file, over and over.

    Attributes:
        end: Where its last record ends.
        counter: The highest number of its events, those that are lost included.
        dropped: Its events that are in no file.
        is_ended: 1: it ended in order.
    """

    end: int
    counter: int
    dropped: int
    is_ended: int


class FileFullError(Exception):
    """There is no room for a record."""


class EventFile:
    """
    A file of events that is being written. Not thread-safe.

    Args:
        path: Its name. There must be none.
        head: What is said of it at its beginning.
        size_bytes: How large it may become.

    Attributes:
        path: As given.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, path: Path, head: bytes, size_bytes: int) -> None:
        self.path = path
        self._size_bytes = size_bytes
        self._marker = new_marker()
        self._end = self._taken = PAGE_BYTES
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        # Under a name that no reader looks at, until it is locked and has a head.
        draft = path.with_name(f".{path.name}.new")
        self._fd = os.open(draft, flags, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._map = map_file(self._fd, size_bytes, allocated_bytes=PAGE_BYTES)
            self._begin(head)
            draft.rename(path)
        except BaseException:
            os.close(self._fd)
            with suppress(OSError):
                draft.unlink()
            raise

    @property
    def size_bytes(self) -> int:
        """How much of it is written."""
        return self._end

    def append(self, payload: bytes) -> None:
        """
        Add a record.

        Raises:
            FileFullError: There is no room in the file.
            OSError: There is none on the disk.
        """
        framed = record(self._marker, payload)
        start = self._end
        end = start + len(framed)
        if end > self._taken:
            if end > self._size_bytes:
                raise FileFullError
            self._take(end)
        self._map[start:end] = framed
        self._end = end

    def has_room(self, size_bytes: int) -> bool:
        """
        Return whether the disk has so much room for it, and have it taken.

        Raises:
            OSError: The disk has none.
        """
        if self._end + size_bytes > self._size_bytes:
            return False
        if self._end + size_bytes > self._taken:
            self._take(self._end + size_bytes)
        return True

    def say(self, counter: int, dropped: int, *, is_ended: bool = False) -> None:
        """Say how far the writer is."""
        STATE.pack_into(self._map, STATE_AT, self._end, counter, dropped, is_ended)

    def sync(self) -> None:
        """Have everything on the disk, as it has to be to outlive the machine's power."""
        self._map.flush()

    def end(self, counter: int, dropped: int) -> None:
        """Say that the writer ended in order, and give back what it did not use."""
        self.say(counter, dropped, is_ended=True)
        fd, end = self._fd, self._end
        self._map.close()
        with suppress(OSError):
            os.ftruncate(fd, end)
        self.leave()

    def leave(self) -> None:
        """Close it, as it is: a newer one has begun, or this is a forked child."""
        self._map.close()
        fd, self._fd = self._fd, -1
        if fd != -1:
            os.close(fd)

    def _begin(self, head: bytes) -> None:
        top = header(KIND, self._marker)
        framed = record(self._marker, head)
        if HEAD_AT + len(framed) > STATE_AT:
            raise OSError("the head of a file of events does not fit its page")
        self._map[: len(top)] = top
        self._map[HEAD_AT : HEAD_AT + len(framed)] = framed
        self.say(0, 0)

    def _take(self, end: int) -> None:
        """Take room from the disk for what is written up to *end*, and some more."""
        wanted = min(max(end, self._taken + _PIECE_BYTES), self._size_bytes)
        allocate(self._fd, self._taken, wanted)
        self._taken = wanted
