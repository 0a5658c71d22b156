"""
The processes whose databases in memory have writes in a journal, and which of them have ended.

The file outlives such a database, and nobody else can make its writes. A process id does not tell
whether it is there still: it is given again, and is another process's in another container. So a
process holds a lock of the kernel's beside the journal, which is gone with it however it ends.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from ...telemetry.files.file_lock import FileLock, try_lock
from ...telemetry.process.fork import reset_after_fork

ENDED = "its process has ended"
"""Why a write of a database in memory is set aside that nobody has any more."""

_OF_PROCESS = re.compile(r"memory .* of process \d+ ([0-9a-f]{8})", re.DOTALL)
_SUFFIX = ".lock"


class _ThisProcess:
    """
    This process, as the files that outlive a process name it.

    Attributes:
        name: Its name, which no other process ever has.
    """

    def __init__(self) -> None:
        self._locks: dict[Path, FileLock] = {}
        self._begin()
        reset_after_fork(self)

    def _begin(self) -> None:
        self._id = os.urandom(4).hex()
        self.name = f"process {os.getpid()} {self._id}"

    def forked(self) -> None:
        """Begin anew: the locks are the parent's, and must end with it."""
        for lock in self._locks.values():
            lock.release()
        self._locks = {}
        self._begin()

    def claim(self, journal: Path) -> None:
        """
        Lock a file that shows this process alive to the users of *journal*, inside a write to it.

        Raises:
            OSError: No lock file can be made.
        """
        if journal in self._locks:
            return
        lock = try_lock(journal.with_name(f"{_prefix(journal)}{self._id}"))
        if lock is not None:  # else it is held under another path of the same file
            self._locks[journal] = lock


this_process = _ThisProcess()


def set_aside_ended(connection: sqlite3.Connection, journal: Path) -> None:
    """
    Set aside what waits for databases in memory of processes that have ended.

    Inside a transaction that writes *journal*: no process shows meanwhile that it lives.

    Raises:
        OSError: The folder cannot be read.
    """
    living = set(_living(journal))
    for queue, address in connection.execute("SELECT id, address FROM queue").fetchall():
        found = _OF_PROCESS.fullmatch(address)
        if found is None or found[1] in living:
            continue
        connection.execute(
            "UPDATE waiting SET parked = ?, lands_until_s = 0 WHERE queue = ? AND parked IS NOT ?",
            (ENDED, queue, ENDED),
        )
        # Nobody can write to that memory any more, so that no deletion has to be held against
        # anything.
        connection.execute("DELETE FROM forgotten WHERE queue = ?", (queue,))
        connection.execute(
            "DELETE FROM queue WHERE id = ? AND id NOT IN (SELECT queue FROM waiting)", (queue,)
        )


def _living(journal: Path) -> Iterator[str]:
    """Yield the ids of processes that hold their locks, and remove the locks of the others."""
    for file in list(journal.parent.iterdir()):
        name = file.name
        if not (name.startswith(_prefix(journal)) and name.endswith(_SUFFIX)):
            continue
        # The kernel lets go of it however the process ended; a process id may be another's by now.
        lock = try_lock(file.with_name(name.removesuffix(_SUFFIX)))
        if lock is None:
            yield name.removeprefix(_prefix(journal)).removesuffix(_SUFFIX)
        else:
            file.unlink(missing_ok=True)
            lock.release()


def _prefix(journal: Path) -> str:
    return f"{journal.name}.process-"
