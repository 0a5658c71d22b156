"""Reading of a journal's files without locking them, while other processes write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ...telemetry.files.file_lock import lockable_files
from ...telemetry.files.framing import RECORD_BYTES, scan
from ...telemetry.network.probe import may_write
from .journal import JournalStats
from .journal_file import KIND
from .records import Write, waiting


def look(path: Path, max_bytes: int) -> JournalStats:
    """
    Return what all processes together have in the journal at *path*.

    Raises:
        OSError: A file of it cannot be read, or its place cannot be written.
    """
    may_write(path)
    files = [(each, each.read_bytes()) for each in lockable_files(path)]
    writes = [write for _path, data in files for write in _waiting(data)]
    return JournalStats(
        path=path,
        size_bytes=max((len(data) for _path, data in files), default=0),
        max_bytes=max_bytes,
        waiting=dict(Counter(write.key for write in writes)),
        oldest_ns=min((write.created_ns for write in writes), default=None),
        quarantined=tuple(sorted(_put_aside(path))),
    )


def _put_aside(path: Path) -> Iterator[Path]:
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    for each in beside:
        if each.name.startswith(path.name) and ".quarantine-" in each.name:
            yield each


def _waiting(data: bytes) -> Iterator[Write]:
    spans = scan(data, KIND).records
    found = waiting((data[span.start + RECORD_BYTES : span.end], span) for span in spans)
    return (placed.write for placed in found.values())
