"""
A log file that several processes append to, and that whichever fills it moves aside.

Every batch is written under the file's own lock, so that no line is within another, and a file is
moved aside by one process while none writes. Who waited for the lock meanwhile finds another file
in its place, and goes on there: so does everybody after `logrotate`.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ..delivery.sink import DeliveryError
from ..network.probe import try_writing
from ..process.fork import reset_after_fork

_MODE = 0o600
"""Of a first file. One that follows has the mode of the one that was moved aside."""


def _now() -> datetime:
    return datetime.now(UTC)


class _Torn(NamedTuple):
    """A part of some lines that is in a file: the rest failed, and it was not taken back."""

    status: os.stat_result
    data: bytes
    written: int

    @property
    def start(self) -> int:
        """Offset of the write in the file, in bytes."""
        return self.status.st_size

    def is_end_of(self, status: os.stat_result) -> bool:
        """Return whether nobody has written behind it."""
        return os.path.samestat(self.status, status) and status.st_size == self.start + self.written

    @property
    def stays(self) -> bytes:
        """What stays where it is: whole lines; all of it where it went into a pipe."""
        # What a pipe has taken is on its way to whoever reads it.
        if not stat.S_ISREG(self.status.st_mode):
            return self.data[: self.written]
        # Behind other lines it cannot be cut off. The line that it breaks off in is ended by
        # whoever wrote next, and is written again whole.
        return self.data[: self.data.rfind(b"\n", 0, self.written) + 1]


class LogFile:
    """
    Appends lines to a file, which is opened with the first of them.

    Args:
        path: Where. Missing folders are made.
        most_bytes: Beyond which the file is moved aside, and another one begun.
        kept: Files kept that were moved aside.
        now: The time, which they are named by.
    """

    def __init__(
        self, path: Path, *, most_bytes: int, kept: int, now: Callable[[], datetime] = _now
    ) -> None:
        self._path = path
        self._mode = _MODE
        self._most_bytes = most_bytes
        self._kept = kept
        self._now = now
        self._fd: int | None = None
        self._torn: _Torn | None = None
        self._there = b""
        """The beginning of lines that failed which is in a file for good."""
        reset_after_fork(self)

    def forked(self) -> None:
        """Open the file anew in a forked child: a lock would be the parent's as well."""
        self.close()
        # The parent's: it mends its own write, and the child has none.
        self._torn, self._there = None, b""

    def append(self, lines: str) -> None:
        """
        Write *lines*, each with its line feed.

        Raises:
            OSError: They are not all written. They may be appended again, and are there once then:
                what was written of them is taken back now, or passed over or taken back then.
        """
        # A lone surrogate, which JSON can hold, costs its own place and not the line.
        data = lines.encode("utf-8", "replace")
        with self._locked() as fd:
            # First, in case that the last failure could not be taken back at once.
            self._mend(fd, os.fstat(fd))
            data = self._rest_of(data, fd)
            status = os.fstat(fd)
            is_file = stat.S_ISREG(status.st_mode)
            # An empty file is not moved: a batch that is too large for any would move one aside
            # each time.
            if not (is_file and status.st_size and status.st_size + len(data) > self._most_bytes):
                self._write(fd, status, data)
                return
            # Whoever may read the log now may go on doing so.
            self._mode = stat.S_IMODE(status.st_mode)
            self._move_aside()
        # Outside of the lock that goes with it: whoever waits for it looks which file is there now.
        self.close()
        with self._locked() as fd:
            self._write(fd, os.fstat(fd), data)

    def check(self) -> str:
        """
        Check that the file can be written and return a description. Leaves nothing behind.

        Raises:
            DeliveryError: They would not.
        """
        try:
            # Not by opening it: a check must not make the file, nor begin a line.
            try_writing(self._path)
        except OSError as exc:
            reason = (exc.strerror or type(exc).__name__).lower()
            raise DeliveryError(f"{self._path} cannot be written: {reason}") from exc
        return f"writes to {self._path}"

    def close(self) -> None:
        """Close the file. A later `append` opens it again."""
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(OSError):
                os.close(fd)

    def _mend(self, fd: int, status: os.stat_result) -> None:
        """Cut off the remains of a failed write, or count the bytes that cannot be cut off."""
        torn = self._torn
        if torn is None:
            return
        if stat.S_ISREG(status.st_mode) and torn.is_end_of(status):
            os.ftruncate(fd, torn.start)  # raises as long as it cannot be
        else:
            self._there += torn.stays
        self._torn = None

    def _rest_of(self, data: bytes, fd: int) -> bytes:
        """Return what of *data* is still to be written: all, if it is not what failed."""
        # Other lines than those that failed: the lane gave those up.
        if not data.startswith(self._there):
            if not self._there.endswith(b"\n"):  # in a pipe: of a file the end can be read
                os.write(fd, b"\n")
            self._there = b""
        return data[len(self._there) :]

    def _write(self, fd: int, status: os.stat_result, data: bytes) -> None:
        """Write *data* at the end of a file, or nothing of it, on a line of its own."""
        # Behind it the first of ours would be one line with it, which nobody could parse.
        if _ends_within_a_line(fd, status):
            os.write(fd, b"\n")
            status = os.fstat(fd)
        written = 0
        try:
            # A write may take a part of it, in a pipe or on a disk that fills.
            while written < len(data):
                written += os.write(fd, memoryview(data)[written:])
        except OSError:
            # Cut at once where that can be done: nobody else has the lock, and so the end is ours.
            if written and not _is_cut(fd, status):
                self._torn = _Torn(status, data, written)
            raise
        self._there = b""

    @contextmanager
    def _locked(self) -> Generator[int]:
        """Hold the lock of the file that is at the path now."""
        while True:
            fd = self._fd = self._open() if self._fd is None else self._fd
            _lock(fd)
            if self._is_there(fd):
                break
            self.close()  # which releases it: somebody has moved the file
        try:
            yield fd
        finally:
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)

    def _open(self) -> int:
        # Each time: a folder that was cleared away is no reason to lose what follows.
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Appended by the system: where locks do nothing, processes still do not overwrite lines.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        return os.open(self._path, flags, self._mode)

    def _is_there(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), self._path.stat())
        except OSError:
            return False

    def _move_aside(self) -> None:
        """Name the file by the time, and delete the oldest of its kind. The lock is held."""
        stem, suffix = self._path.stem, self._path.suffix
        name = f"{stem}.{self._now():%Y-%m-%d_%H-%M-%S_%f}"
        aside, number = self._path.with_name(f"{name}{suffix}"), 0
        # A rename replaces what is there: two files within one microsecond, or with a clock set
        # back.
        while aside.exists():
            number += 1
            aside = self._path.with_name(f"{name}.{number}{suffix}")
        self._path.rename(aside)
        # With what `gzip` and the like add, and nothing else: other programs' files in the folder
        # stay.
        ours = re.compile(rf"{re.escape(stem)}\.[\d_-]{{26}}(\.\d+)?{re.escape(suffix)}(\.\w+)?")
        moved = [each for each in self._path.parent.iterdir() if ours.fullmatch(each.name)]
        # By their age first: the clock that named them may have been set back.
        for old in sorted(moved, key=_age_and_name)[: -self._kept or None]:
            with suppress(OSError):
                old.unlink()


def _age_and_name(path: Path) -> tuple[int, str]:
    try:
        return path.stat().st_mtime_ns, path.name
    except OSError:
        # Deleted meanwhile by another process that moves files aside, or by hand.
        return 0, path.name


def _lock(fd: int) -> None:
    with suppress(OSError):  # a file system without locks: then one process at a time is on its own
        fcntl.flock(fd, fcntl.LOCK_EX)


def _ends_within_a_line(fd: int, status: os.stat_result) -> bool:
    """Return whether a file's last line has no end: whoever wrote it was killed."""
    size_bytes = status.st_size if stat.S_ISREG(status.st_mode) else 0
    return bool(size_bytes) and os.pread(fd, 1, size_bytes - 1) != b"\n"


def _is_cut(fd: int, status: os.stat_result) -> bool:
    """Cut a file to what it was, and return whether it is."""
    if not stat.S_ISREG(status.st_mode):
        return False
    try:
        os.ftruncate(fd, status.st_size)
    except OSError:
        return False
    return True
