"""
The write journal of one process: redacted writes that wait for their store.

What is appended is on the disk before the caller is told. Each write waits in the queue of its
guard, in order. Before a write is tried again a mark says so, durably: a crash in the middle leaves
it in doubt rather than forgotten. When nothing waits the file is empty again.

Processes that share a path have a file each. Files whose processes are dead are taken over, when
the journal is opened and before anything is forgotten.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from ...telemetry.files.file_lock import FileLock, lock_free_name, lockable_files, try_lock
from ...telemetry.process.faults import Faults
from ...telemetry.process.fork import reset_after_fork
from . import MAX_BYTES
from .journal_file import Entry, InFlight, JournalFile, Queue, holds
from .records import Placed, Waiting, Write

_RETRY_S = 30.0
"""Seconds until a journal that could not be opened is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalStats:
    """
    The state of a journal.

    Attributes:
        path: Its file in this process. None: it could not be opened.
        size_bytes: How large that is.
        max_bytes: How large it may become.
        waiting: Writes that wait, by queue.
        oldest_ns: Since when the oldest of them waits, or None.
        quarantined: Files that hold what could not be read.
    """

    path: Path | None
    size_bytes: int
    max_bytes: int
    waiting: dict[str, int]
    oldest_ns: int | None
    quarantined: tuple[Path, ...]


class Journal:
    """
    The journal of one scope in one process. Thread-safe.

    Args:
        path: Its file. Other processes take ``<path>.2`` and so on.
        faults: Where errors of its own are noted.
        max_bytes: How large a file of it may become.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        path: Path,
        *,
        faults: Faults,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._faults = faults
        self._clock = clock
        self._queues: dict[str, Queue] = {}
        self._files: list[JournalFile] = []  # the first is this process's own
        self._quarantined: list[Path] = []
        self._begin()
        weakref.finalize(self, _close, self._files)
        reset_after_fork(self)

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._retry_at = float("-inf")

    def forked(self) -> None:
        """Release the parent's files in a forked child, which opens its own when it needs one."""
        self._begin()
        _close(self._files)
        for queue in self._queues.values():
            queue.forked()

    def open(self) -> None:
        """
        Open the file and take over what dead processes left.

        Raises:
            OSError: It cannot be opened.
        """
        with self._lock:
            if not self._files:
                self._load([self._file(lock_free_name(self._path))])
                self.adopt()

    def is_open(self) -> bool:
        """Tell whether there is a file, having tried to open one; not too often, if it fails."""
        return bool(self._files) or self._opens()

    def _opens(self) -> bool:
        with self._lock:
            if self._clock() < self._retry_at:
                return False
            try:
                self.open()
            except OSError as exc:
                self._retry_at = self._clock() + _RETRY_S
                self._faults.note("journal.open", exc)
            return bool(self._files)

    def close(self, timeout_s: float = -1) -> None:
        """
        Let go of the files. What waits stays in them; the next call opens them again.

        Args:
            timeout_s: Seconds to wait for whoever writes just now; -1: as long as it takes.
        """
        if not self._lock.acquire(timeout=timeout_s):
            return
        try:
            _close(self._files)
            for queue in self._queues.values():
                queue.entries = {}
        finally:
            self._lock.release()

    # -- queues ------------------------------------------------------------------------------------

    def queue(self, store: str, client: object) -> Queue:
        """
        Return the queue of *client*, a store of the name *store*.

        The first client of that name has the queue ``store``, the second ``store#2``; one that
        takes the place of a client that is gone has its queue. So a process that wraps its clients
        in the same order as the one before it finds what that one left.
        """
        with self._lock:
            queue = next(each for each in self._candidates(store) if _is_for(each, client))
            queue.client = _reference(client)
            return queue

    def _candidates(self, store: str) -> Iterator[Queue]:
        yield self._queue(store)
        for number in count(2):
            yield self._queue(f"{store}#{number}")

    def _queue(self, key: str) -> Queue:
        return self._queues.setdefault(key, Queue(key))

    def head(self, queue: Queue) -> Entry | None:
        """Return the write that has waited longest."""
        with self._lock:
            return next(iter(queue.entries.values()), None)

    # -- one write ---------------------------------------------------------------------------------

    def append(self, write: Write, call: InFlight | None = None) -> Entry:
        """
        Keep *write*. It is on the disk when this returns.

        Args:
            write: What to keep.
            call: What the store may still be at work on.

        Raises:
            FileFullError: There is no room.
            OSError: It could not be written.
        """
        with self._lock:
            self.open()
            file = self._files[0]
            entry = self._enter(Placed(write, file.keep(write)), file)
            entry.call = call
            return entry

    def read(self, entry: Entry) -> Write:
        """
        Return the write that waits as *entry*.

        Raises:
            ValueError: It is not what was written.
            OSError: It cannot be read.
        """
        with self._lock:
            return entry.file.read(entry)

    def attempt(self, entry: Entry) -> None:
        """
        Say, before it is so, that the store is asked to take *entry*.

        Raises:
            OSError: It could not be said, so the store must not be asked.
        """
        with self._lock:
            if not entry.in_doubt:
                entry.file.attempt(entry)
                entry.in_doubt = True

    def done(self, entry: Entry) -> bool:
        """Strike *entry* out. False: somebody else has."""
        with self._lock:
            if entry.queue.entries.get(entry.write_id) is not entry:
                return False
            try:
                entry.file.strike(entry)
                self._clear_away()
            except (OSError, ValueError) as exc:
                self._faults.note("journal.done", exc)
            # Only now: whoever finds nothing to wait for must not be undone after a crash.
            del entry.queue.entries[entry.write_id]
            return True

    def _clear_away(self) -> None:
        """Remove the files of dead processes in which nothing waits any more."""
        for file in [each for each in self._files[1:] if not each.entries]:
            file.remove()
            self._files.remove(file)

    # -- files -------------------------------------------------------------------------------------

    def adopt(self) -> None:
        """Take over the files of processes that have died."""
        with self._lock:
            if not self._files:
                return  # opening does it
            try:
                claimed = [each for path in self._others() if (each := try_lock(path))]
                self._load([self._file(each) for each in claimed])
                self._clear_away()
            except OSError as exc:
                self._faults.note("journal.adopt", exc)

    def waits_elsewhere(self, queue: Queue) -> bool:
        """Tell whether writes for *queue* wait in the journal of another process, still alive."""
        with self._lock:
            return any(holds(path, queue.key) for path in self._others())

    def _others(self) -> list[Path]:
        mine = {each.frames.path for each in self._files}
        return [each for each in lockable_files(self._path) if each not in mine]

    def _file(self, claimed: FileLock) -> JournalFile:
        file = JournalFile(claimed, self._max_bytes)
        if file.frames.recovery.quarantine is not None:
            self._quarantined.append(file.frames.recovery.quarantine)
            self._faults.count("journal.quarantine")
        return file

    def _load(self, files: list[JournalFile]) -> None:
        found = [(each, each.waiting()) for each in files]
        self._files.extend(files)
        for file, kept in sorted(found, key=lambda pair: _oldest_ns(pair[1])):
            for placed in kept.values():
                self._enter(placed, file)

    def _enter(self, placed: Placed, file: JournalFile) -> Entry:
        write = placed.write
        queue = self._queue(write.key)
        entry = Entry(write.id, queue, write.created_ns, write.in_doubt, file, placed.span)
        queue.entries[write.id] = file.entries[write.id] = entry
        return entry

    def stats(self) -> JournalStats:
        """Return what can be said of the journal now, without waiting for its disk."""
        own = next((each.frames for each in list(self._files)), None)
        queues = dict(self._queues)
        waiting = {key: list(queue.entries.values()) for key, queue in queues.items()}
        kept = (each.created_ns for entries in waiting.values() for each in entries)
        return JournalStats(
            path=own.path if own else None,
            size_bytes=own.size_bytes if own else 0,
            max_bytes=self._max_bytes,
            waiting={key: len(entries) for key, entries in waiting.items()},
            oldest_ns=min(kept, default=None),
            quarantined=tuple(self._quarantined),
        )


def _is_for(queue: Queue, client: object) -> bool:
    held = queue.client()
    return held is None or held is client


def _reference(client: object) -> Callable[[], object]:
    try:
        return weakref.ref(client)
    except TypeError:
        return lambda: client


def _close(files: list[JournalFile]) -> None:
    for file in files:
        with suppress(OSError):
            file.close()
    files.clear()


def _oldest_ns(kept: Waiting) -> int:
    return min((each.write.created_ns for each in kept.values()), default=0)
