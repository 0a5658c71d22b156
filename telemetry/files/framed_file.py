"""
A durable file of records: a record is on the disk when `append` returns.

One process at a time (see `file_lock`). Opening it never fails because of its content: whole
records are kept, damaged bytes go to a file beside it, and a file of another kind, or of a newer
version, is moved there whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from pathlib import Path

from .framing import (
    HEADER_BYTES,
    RECORD_BYTES,
    ByteRange,
    FileOrigin,
    Scan,
    header,
    new_marker,
    payload,
    record,
    scan,
)

QUARANTINE = ".quarantine-"
"""In the name of a file that holds what could not be read of another."""

_MODE = 0o600
_sync = getattr(os, "fdatasync", os.fsync)


class FramedFileFullError(Exception):
    """The record would make the file larger than it may become."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """
    The findings of opening a file.

    Attributes:
        records: What could be read, in order.
        quarantine: Where the rest is now, or None where there was no rest.
        quarantined_bytes: How much that is.
        verdict: Whose the file was.
    """

    records: tuple[ByteRange, ...] = ()
    quarantine: Path | None = None
    quarantined_bytes: int = 0
    verdict: FileOrigin = FileOrigin.OURS


class FramedFile:
    """
    A file of records. Not thread-safe.

    Args:
        path: Where. Missing folders are made, readable for the owner alone, as the file is.
        kind: Up to eight bytes that tell what the records are.
        max_bytes: Beyond which nothing is appended.

    Attributes:
        recovery: What was found in it.
        size_bytes: How large it is.

    Raises:
        OSError: It cannot be read, made or repaired.
    """

    def __init__(self, path: Path, *, kind: bytes, max_bytes: int) -> None:
        self.path = path
        self._kind = kind
        self._max_bytes = max_bytes
        self._marker = b""
        self._torn = False
        self._adrift = False
        self._synced_bytes = 0
        self._refused = False
        self._fd = -1
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self.recovery = self._recover(_content(path))
        except BaseException:
            self.close()
            raise

    def append(self, payloads: Sequence[bytes], *, syncs: bool = True) -> tuple[ByteRange, ...]:
        """
        Add *payloads*, all or none. They are on the disk when this returns.

        Without *syncs* they are with the operating system: they outlive this process, and the
        machine as well once what `syncing` returns was called.

        Raises:
            FramedFileFullError: There is no room, and nothing was added.
            OSError: Nothing was added, as far as can be known.
        """
        framed = [record(self._marker, each) for each in payloads]
        added = sum(map(len, framed))
        if self.size_bytes + added > self._max_bytes:
            raise FramedFileFullError
        self._mend()
        self._torn = True
        _write(self._fd, b"".join(framed), self.size_bytes)
        if syncs:
            _sync(self._fd)
        self._torn = False
        spans = _spans(framed, self.size_bytes)
        self.size_bytes += added
        if syncs and not self._refused:
            self._synced_bytes = self.size_bytes
        return spans

    def syncing(self) -> Callable[[], None] | None:
        """
        Return what has on the disk what was appended until now, while more is appended.

        It is to be called once, and raises `OSError` as long as it is not there, as far as can be
        known. None: there is nothing to wait for.

        Raises:
            OSError: What the disk has refused before cannot be written anew.
        """
        if self._refused:
            self._put_back()  # a system that could not write forgets it, and calls it synced later
        self._anchor()
        if self._synced_bytes == self.size_bytes:
            return None
        fd, until, marker = os.dup(self._fd), self.size_bytes, self._marker

        def sync() -> None:
            try:
                _sync(fd)
            except OSError:
                self._refused = True
                raise
            finally:
                os.close(fd)
            if marker == self._marker:  # else it was rewritten meanwhile
                self._synced_bytes = until

        return sync

    def read(self, span: ByteRange) -> bytes:
        """
        Return the payload of a record.

        Raises:
            ValueError: It is not what was written.
            OSError: It cannot be read.
        """
        framed = os.pread(self._fd, span.end - span.start, span.start)
        found = payload(self._marker, framed)
        if found is None:
            raise ValueError("a record is damaged")
        return found

    def rewrite(self, payloads: Iterable[bytes]) -> tuple[ByteRange, ...]:
        """
        Replace all records by *payloads*, atomically.

        Raises:
            OSError: Nothing has changed.
        """
        marker = new_marker()
        framed = [record(marker, each) for each in payloads]
        self._replace(b"".join((header(self._kind, marker), *framed)))
        self._marker = marker
        # Until the folder is on the disk too, a power cut may bring the old file back. Nothing is
        # lost with it; `append` is where it matters.
        with suppress(OSError):
            self._anchor()
        return _spans(framed, HEADER_BYTES)

    def remove(self) -> None:
        """
        Remove the file, for good: it does not come back after a power cut.

        Raises:
            OSError: It could not be removed.
        """
        self.path.unlink(missing_ok=True)
        _sync_folder(self.path.parent)
        self.close()

    def close(self) -> None:
        """Close the file for good."""
        fd, self._fd = self._fd, -1
        if fd != -1:
            os.close(fd)

    # -- opening -----------------------------------------------------------------------------------

    def _recover(self, data: bytes | None) -> Recovery:
        found = scan(data or b"", self._kind)
        if found.verdict is not FileOrigin.OURS:
            aside = _set_aside(self.path)
            self.rewrite(())
            return Recovery(
                quarantine=aside, quarantined_bytes=len(data or b""), verdict=found.verdict
            )
        if found.damaged or not data:
            return self._repair(data or b"", found)
        self._adopt(os.open(self.path, os.O_RDWR), len(data), synced_bytes=0)
        self._marker = found.marker
        return Recovery(records=found.records)

    def _repair(self, data: bytes, found: Scan) -> Recovery:
        damaged = b"".join(data[each.start : each.end] for each in found.damaged)
        # First, and durably: the rewriting below removes it.
        aside = _written_aside(self.path, damaged) if damaged else None
        whole = [data[each.start + RECORD_BYTES : each.end] for each in found.records]
        return Recovery(
            records=self.rewrite(whole), quarantine=aside, quarantined_bytes=len(damaged)
        )

    # -- on the disk -------------------------------------------------------------------------------

    def _mend(self) -> None:
        """Undo an append that failed half-way, and restore the file if somebody removed it."""
        try:
            there = self.path.stat()
        except FileNotFoundError:
            self._put_back()
        else:
            if not os.path.samestat(there, os.fstat(self._fd)):
                _set_aside(self.path)
                self._put_back()
        if self._torn:
            os.ftruncate(self._fd, self.size_bytes)
            os.fsync(self._fd)
            self._torn = False
        self._anchor()

    def _anchor(self) -> None:
        if self._adrift:
            _sync_folder(self.path.parent)
            self._adrift = False

    def _put_back(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._replace(os.pread(self._fd, self.size_bytes, 0))

    def _replace(self, data: bytes) -> None:
        draft = self.path.with_name(f".{self.path.name}.new")
        fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, _MODE)
        try:
            _write(fd, data, 0)
            os.fsync(fd)
            draft.replace(self.path)
        except BaseException:
            os.close(fd)
            with suppress(OSError):
                draft.unlink()
            raise
        self._adrift = True
        self._adopt(fd, len(data), synced_bytes=len(data))

    def _adopt(self, fd: int, size_bytes: int, *, synced_bytes: int) -> None:
        self.close()
        self._fd = fd
        self._torn = self._refused = False
        self.size_bytes, self._synced_bytes = size_bytes, synced_bytes


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(fd: int, data: bytes, at: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(fd, left, at)
        left, at = left[written:], at + written


def _spans(framed: Iterable[bytes], start: int) -> tuple[ByteRange, ...]:
    ends = accumulate(map(len, framed), initial=start)
    return tuple(ByteRange(begin, end) for begin, end in pairwise(ends))


def _quarantine_names(path: Path) -> Iterable[Path]:
    return (path.with_name(f"{path.name}{QUARANTINE}{number}") for number in count(1))


def _set_aside(path: Path) -> Path:
    aside = next(each for each in _quarantine_names(path) if not each.exists())
    path.rename(aside)
    _sync_folder(path.parent)
    return aside


def _written_aside(path: Path, damaged: bytes) -> Path:
    for aside in _quarantine_names(path):
        with suppress(FileExistsError):
            fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
            try:
                _write(fd, damaged, 0)
                os.fsync(fd)
            finally:
                os.close(fd)
            _sync_folder(path.parent)
            return aside
    raise AssertionError  # the names do not end


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
