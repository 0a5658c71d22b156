"""
Locks that give each process a file of its own: ``<name>``, ``<name>.2`` and so on.

A file lock is a lock on ``<name>.lock``, which the kernel releases when its holder dies, however it
dies. Lock files stay: removing one would let two processes hold "the" lock of one name. What a dead
process left behind can be locked by any other.
"""

from __future__ import annotations

import fcntl
import glob
import os
from pathlib import Path


class FileLock:
    """The exclusive right to a file, until `release` or the end of the process."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd

    def fileno(self) -> int:
        """Return the descriptor that holds it: a process that inherits that holds it, too."""
        return self._fd

    def release(self) -> None:
        """
        Release the lock.

        In a forked child this leaves it with the parent, since it only closes the child's copy.
        """
        fd, self._fd = self._fd, -1
        if fd != -1:
            os.close(fd)


def is_free(fd: int) -> bool:
    """Lock an open file for as long as it is open; False: its process is alive."""
    try:
        # Not `lockf`, whose locks go with the first descriptor of the file that the process closes.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def try_lock(path: Path) -> FileLock | None:
    """Lock *path* itself; None if somebody else holds it."""
    fd = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        # Not `lockf`, whose locks go with the first descriptor of the file that the process closes.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise
    return FileLock(path, fd)


def lockable_files(path: Path) -> list[Path]:
    """Return the files that exist under the names of *path*."""
    numbered = path.parent.glob(f"{glob.escape(path.name)}.*")
    # Locks, quarantined files and what people put beside them have other endings.
    found = [each for each in numbered if each.suffix[1:].isdecimal()]
    if path.exists():
        found.append(path)
    # By length first: `.10` after `.9`.
    return sorted(found, key=lambda each: (len(each.name), each))
