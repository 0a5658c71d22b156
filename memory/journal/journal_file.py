"""One file of the journal, locked by one process, and the queues of the writes in it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ...telemetry.files.file_lock import FileLock
from ...telemetry.files.framed_file import FramedFile
from ...telemetry.files.framing import HEADER_BYTES, RECORD_BYTES, Span, scan
from .records import Waiting, Write, attempted, kept, struck, waiting, write_in

KIND = b"journal"

_LITTER_BYTES = 64 * 1024
"""Bytes of struck records in a file before it is rewritten."""


class InFlight(Protocol):
    """The call of a write that the store may still be at work on."""

    started: float
    ended: bool


@dataclass(slots=True, eq=False)
class Entry:
    """
    A write that waits. The write itself is on the disk.

    Attributes:
        write_id: Its id.
        queue: Where it waits.
        created_ns: Since when.
        in_doubt: The store may have taken it already.
        file: Where it is kept.
        span: And at which place.
        call: What the store was still at work on as it was kept, or tried again.
    """

    write_id: str
    queue: Queue
    created_ns: int
    in_doubt: bool
    file: JournalFile
    span: Span
    call: InFlight | None = field(default=None, repr=False)


def _nothing() -> object:
    return None


class Queue:
    """
    The writes that wait for one guarded client, oldest first.

    Attributes:
        key: The store's name, and a number where there are several of it.
        client: Returns the client, or None: it is gone, or there was none yet.
        entries: By id. Empty: there is nothing to wait behind.
        busy: Held by whoever makes them again.
        not_before: Monotonic seconds before which it is not worth trying.
        failures: Attempts in a row that failed.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.client: Callable[[], object] = _nothing
        self.forked()

    def forked(self) -> None:
        """Begin empty: what waits is the parent's."""
        self.entries: dict[str, Entry] = {}
        self.busy = threading.Lock()
        self.not_before = 0.0
        self.failures = 0


class JournalFile:
    """
    One file of the journal, locked by this process. Not thread-safe.

    Args:
        claimed: Its lock. Released where the file cannot be opened.
        max_bytes: How large it may become.

    Attributes:
        frames: Its records.
        entries: What waits in it, by id, in order.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, claimed: FileLock, max_bytes: int) -> None:
        self._claim = claimed
        self.entries: dict[str, Entry] = {}
        try:
            self.frames = FramedFile(claimed.path, kind=KIND, max_bytes=max_bytes)
        except BaseException:
            claimed.release()
            raise

    def close(self) -> None:
        """Close the file and release its lock."""
        self.frames.close()
        self._claim.release()

    def remove(self) -> None:
        """
        Remove the file.

        Raises:
            OSError: It is still there, and still held.
        """
        self.frames.remove()
        self._claim.release()

    def waiting(self) -> Waiting:
        """Return what was found to wait as the file was opened."""
        records = self.frames.recovery.records
        return waiting((self.frames.read(span), span) for span in records)

    def keep(self, write: Write) -> Span:
        """
        Add *write*.

        Raises:
            FileFullError: There is no room.
            OSError: It could not be written.
        """
        (span,) = self.frames.append([kept(write)])
        return span

    def read(self, entry: Entry) -> Write:
        """
        Return the write that waits as *entry*.

        Raises:
            ValueError: It is not what was written.
            OSError: It cannot be read.
        """
        write = write_in(self.frames.read(entry.span))
        if write is None:
            raise ValueError("a record is no kept write")
        return replace(write, in_doubt=entry.in_doubt)

    def attempt(self, entry: Entry) -> None:
        """
        Record that *entry* is about to be made again.

        Raises:
            OSError: It could not be said.
        """
        self.frames.append([attempted(entry.write_id)], reserved=True)

    def strike(self, entry: Entry) -> None:
        """
        Record that *entry* waits no more; rewrite the file where that is worth it.

        Raises:
            OSError: It could not be said.
        """
        self.entries.pop(entry.write_id, None)
        if not self.entries and self._is_cleared():
            return
        self.frames.append([struck(entry.write_id)], reserved=True)
        live = sum(each.span.end - each.span.start for each in self.entries.values())
        size = self.frames.size_bytes
        if size - live > max(_LITTER_BYTES, size // 2):
            self._tidy()

    def _is_cleared(self) -> bool:
        try:
            self.frames.rewrite(())
        except OSError:
            return False  # on a full disk there may be room for a mark, still
        return True

    def _tidy(self) -> None:
        entries = list(self.entries.values())
        spans = self.frames.rewrite([kept(self.read(each)) for each in entries])
        for entry, span in zip(entries, spans, strict=True):
            entry.span = span


def holds(path: Path, key: str) -> bool:
    """Tell whether writes for the queue *key* wait in a file of another process."""
    try:
        if path.stat().st_size <= HEADER_BYTES:
            return False
        data = path.read_bytes()
    except FileNotFoundError:
        return False  # its process has just emptied and removed it
    except OSError:
        return True  # what cannot be looked into is not known to be empty
    spans = scan(data, KIND).records
    found = waiting((data[span.start + RECORD_BYTES : span.end], span) for span in spans)
    return any(each.write.key == key for each in found.values())
