"""
What no audit trail on this disk can exceed: the same bytes, neither sealed nor encrypted.

Measured in the same rounds as the trail: a disk that others use is another one a minute later.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from statistics import median

_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 4000")
_SYNCS = 50


class Bare:
    """
    A table of one column, in a database that is as durable as the trail's.

    Args:
        path: Where.
        row_bytes: How much an event takes there, its share of the indexes included.
    """

    def __init__(self, path: Path, row_bytes: int) -> None:
        self._body = os.urandom(row_bytes)
        self._connection = sqlite3.connect(path, isolation_level=None)
        for each in _PRAGMAS:
            self._connection.execute(f"PRAGMA {each}")
        self._connection.execute("CREATE TABLE bare(number INTEGER PRIMARY KEY, body BLOB)")
        self._next = 0

    def append(self, count: int, batch: int) -> float:
        """Commit *count* rows in batches, and return rows a second."""
        began = time.perf_counter()
        for start in range(0, count, batch):
            stop = min(start + batch, count)
            rows = [(self._next + number, self._body) for number in range(start, stop)]
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT INTO bare VALUES (?, ?)", rows)
            self._connection.execute("COMMIT")
        self._next += count
        return count / (time.perf_counter() - began)

    def close(self) -> None:
        """Let go."""
        self._connection.close()


def sync_ms(folder: Path) -> float:
    """Return the median time that this disk takes to say that 4 KiB are on it."""
    times = list[float]()
    with (folder / "sync").open("wb") as file:
        for _ in range(_SYNCS):
            file.write(bytes(4_096))
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - began) * 1e3)
    return median(times)
