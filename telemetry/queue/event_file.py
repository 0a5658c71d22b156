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
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from ..files.framing import header, new_marker, record
from ..files.mapped_file import MappedFile, allocate, map_file

KIND = b"mnrelay"
SUFFIX = ".events"
PAGE_BYTES = 4_096
"""Before the records: header, the record of `FileHead`, and `FileState` at the end."""

HEAD_AT = 64
STATE_AT = PAGE_BYTES - 64
STATE = Struct("@QQQQ")  # native: each number is stored whole, whenever the process is killed
QUARANTINE = ".quarantine-"
"""In the name of a file that holds what could not be read of another."""

_PIECE_BYTES = 1024 * 1024
_sync = getattr(os, "fdatasync", os.fsync)


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

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, path: Path, head: bytes, size_bytes: int) -> None:
        self.path = path
        self._size_bytes = size_bytes
        self._marker = new_marker()
        self._is_refused = False
        self._synced = -1
        self._end = self._taken = PAGE_BYTES
        self._fd, self._map = self._made(self._page(head))

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

    def append_all(self, payloads: Iterable[bytes]) -> None:
        """Add records, all or none. Raises as `append` does."""
        before = self._end
        try:
            for each in payloads:
                self.append(each)
        except BaseException:
            self.take_back(before)
            raise

    def take_back(self, size_bytes: int) -> None:
        """Take back what was appended since it was that large."""
        # Zeros, since a reader finds records by their marks, wherever they stand.
        self._map[size_bytes : self._end] = bytes(self._end - size_bytes)
        self._end = size_bytes

    def has_room(self, size_bytes: int) -> bool:
        """
        Return whether the disk has so much room for it, and have it taken.

        Raises:
            OSError: The disk has none.
        """
        if self._end + size_bytes > self._size_bytes:
            return False
        # A map may reach beyond what the disk has: the write that finds no block there is a SIGBUS,
        # and the end of the process.
        if self._end + size_bytes > self._taken:
            self._take(self._end + size_bytes)
        return True

    def say(self, counter: int, dropped: int, *, is_ended: bool = False) -> None:
        """Say how far the writer is."""
        # Behind the records: what it says is there is there, whenever the process is killed.
        STATE.pack_into(self._map, STATE_AT, self._end, counter, dropped, is_ended)

    def sync(self) -> None:
        """
        Have everything on the disk, as it has to be to outlive the machine's power.

        Raises:
            OSError: It is not there, as far as can be known.
        """
        sync = self.syncing()
        if sync is not None:
            sync()

    def syncing(self) -> Callable[[], None] | None:
        """
        Return what has on the disk what was appended until now, while more is appended.

        It is to be called once, and raises as `sync` does. None: there is nothing to wait for.
        """
        until, path = self._end, self.path
        if self._synced == until:
            return None
        if self._is_refused:  # a system that could not write forgets it, and calls it synced later
            self._map[:until] = self._map[:until]
        is_new = self._synced == -1

        def sync() -> None:
            # Until it is known to have worked: an error, or a thread that never comes back, leaves
            # it so.
            self._is_refused = True
            _have_on_disk(path)
            # Otherwise the content is on the disk, and the name that leads to it may not be.
            if is_new:
                _have_on_disk(path.parent)
            self._is_refused = False
            self._synced = until

        return sync

    def restore(self) -> None:
        """
        Put the file back, if somebody has removed it.

        Raises:
            OSError: It cannot be made, or looked for.
        """
        with suppress(FileNotFoundError):
            # Somebody may have put another file in its place.
            if os.path.samestat(self.path.stat(), os.fstat(self._fd)):
                return
        fd, mapped = self._fd, self._map
        self._fd, self._map = self._made(mapped[: self._end])
        self._taken, self._synced = self._end, -1
        mapped.close()
        os.close(fd)

    def remove(self) -> None:
        """
        Remove the file, for good: it does not come back after a power cut.

        Raises:
            OSError: It could not be removed.
        """
        self.path.unlink(missing_ok=True)
        _have_on_disk(self.path.parent)
        self.leave()

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

    def _page(self, head: bytes) -> bytes:
        """Return what is before the records."""
        framed = record(self._marker, head)
        if HEAD_AT + len(framed) > STATE_AT:
            raise OSError("the head of a file of events does not fit its page")
        top = header(KIND, self._marker).ljust(HEAD_AT, b"\0") + framed
        return top.ljust(STATE_AT, b"\0") + STATE.pack(PAGE_BYTES, 0, 0, False).ljust(64, b"\0")

    def _made(self, content: bytes) -> tuple[int, MappedFile]:
        """Return a new file with *content*, locked, and its map; nothing is left if that fails."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        # Under a name that no reader looks at, until it is locked and has a head.
        draft = self.path.with_name(f".{self.path.name}.new")
        fd = os.open(draft, flags, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mapped = map_file(fd, self._size_bytes, allocated_bytes=len(content))
            mapped[: len(content)] = content
            draft.rename(self.path)
        except BaseException:
            os.close(fd)
            with suppress(OSError):
                draft.unlink()
            raise
        return fd, mapped

    def _take(self, end: int) -> None:
        """Take room from the disk for what is written up to *end*, and some more."""
        wanted = min(max(end, self._taken + _PIECE_BYTES), self._size_bytes)
        allocate(self._fd, self._taken, wanted)
        self._taken = wanted


def _have_on_disk(path: Path) -> None:
    # Opened anew: a copy of a descriptor would keep the file's lock in a child that is forked now.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _sync(fd)
    finally:
        os.close(fd)
