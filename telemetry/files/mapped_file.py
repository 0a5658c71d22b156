"""
Memory-mapped files, each part of which has its blocks on the disk before it is written.

A write to a part without blocks is no error where the disk is full: it is a signal, and the
application dies of it. So this is the one module that maps files.
"""

from __future__ import annotations

import errno
import mmap
import os

MappedFile = mmap.mmap
"""A file that is mapped into memory."""

_NOT_SUPPORTED = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS})


def map_file(fd: int, size_bytes: int, *, allocated_bytes: int | None = None) -> MappedFile:
    """
    Return the file *fd*, mapped, made as large as *size_bytes* if it is smaller.

    Args:
        fd: The file, open for reading and writing. It may be closed then.
        size_bytes: How much of it is mapped.
        allocated_bytes: How much of that may be written to at once; for more, `allocate` it first.
            None: all of it.

    Raises:
        OSError: There is no room on the disk, or the file cannot be mapped.
    """
    if os.fstat(fd).st_size < size_bytes:
        os.ftruncate(fd, size_bytes)
    allocate(fd, 0, size_bytes if allocated_bytes is None else allocated_bytes)
    return mmap.mmap(fd, size_bytes)


def allocate(fd: int, start: int, end: int) -> None:
    """
    Take room from the disk for the bytes from *start* to *end*; what is in them stays.

    Raises:
        OSError: There is none.
    """
    # Not on macOS, where it is written by hand below.
    fallocate = getattr(os, "posix_fallocate", None)
    if fallocate is not None:
        try:
            fallocate(fd, start, end - start)
        except OSError as exc:
            if exc.errno not in _NOT_SUPPORTED:
                raise
        else:
            return
    # What is there is written once more: that takes blocks, and changes nothing.
    content = os.pread(fd, end - start, start).ljust(end - start, b"\0")
    while content:
        # A disk that becomes full meanwhile takes a part, and says so only the next time.
        written = os.pwrite(fd, content, start)
        content, start = content[written:], start + written
