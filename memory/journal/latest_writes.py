"""
The order of calls, and when each record was written last, shared by all processes of a machine.

A write that waits must not be made after a later one of the same record, and that one may have gone
straight to the store, in another process. So every write that reaches the store is noted here, in a
memory-mapped file of fixed size: no system call, no lock. The file may forget, of the records that
share a place those written longest ago; it is not kept over a power cut. Records are told by keyed
digests.

A wall clock may be set back or forward, and what was asked for later would seem older. So calls are
ordered by how long the machine has lived: its monotonic clock, one for all processes, behind a base
that lies in the file. A machine that is started anew begins its clock anew: whoever opens the
journal then raises the base above all that is known.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path

from ...telemetry.files.mapped_file import map_file

_ROWS, _WAYS = 16_384, 4
_SLOT = struct.Struct("=QQ")  # digest of the record, nanoseconds
_TIME = struct.Struct("=Q")
_ROW_BYTES = _WAYS * _SLOT.size
_BASE_AT = _ROWS * _ROW_BYTES
_FILE_BYTES = _BASE_AT + _TIME.size
_DIGEST_BYTES = 8
_ANSWER = "an answer"
"""Stands for any record: the names of records, as `Touches.places` has them, begin otherwise."""


class LatestWrites:
    """
    The file. Thread-safe, and safe among processes, without a lock.

    Args:
        path: The file. Made, for its owner alone, if it is missing.
        key: Secret bytes for the digests.
        monotonic_ns: Nanoseconds that the machine has lived, the same for all processes.
        wall_ns: Nanoseconds since 1970 UTC, which a new file begins to count from.

    Raises:
        OSError: It cannot be made or mapped.
    """

    def __init__(
        self,
        path: Path,
        key: bytes,
        *,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._key = key
        self._monotonic_ns = monotonic_ns
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            is_new = os.fstat(fd).st_size < _FILE_BYTES
            self._map = map_file(fd, _FILE_BYTES)
            if is_new:
                # Once for the file: a wall clock that is set back later changes no order.
                self._set_base(max(wall_ns() - monotonic_ns(), 0))
        finally:
            os.close(fd)

    def order(self) -> int:
        """Return the place of a call that is made now: higher than that of any before."""
        return self._base() + self._monotonic_ns()

    def begin_after(self, known: int) -> None:
        """Have all calls from now on come after the place *known*, and after all writes noted."""
        noted = max(at for _digest, at in _SLOT.iter_unpack(self._map[:_BASE_AT]))
        # After a restart of the machine the monotonic clock begins at 0.
        lacks = max(known, noted) + 1 - self.order()
        if lacks > 0:
            self._set_base(self._base() + lacks)

    def _base(self) -> int:
        return int(_TIME.unpack_from(self._map, _BASE_AT)[0])

    def _set_base(self, base: int) -> None:
        _TIME.pack_into(self._map, _BASE_AT, base)

    def note(self, database: str, records: Iterable[str], at_ns: int) -> None:
        """Note that *records* of *database* were written by the call of the place *at_ns*."""
        for record in records:
            digest = self._digest(database, record)
            places = [(place, *_SLOT.unpack_from(self._map, place)) for place in _places(digest)]
            # Its own slot, else the oldest of four: a record that is pushed out is one that nobody
            # waits for.
            _known, ns, place = min((known != digest, ns, place) for place, known, ns in places)
            if _known or ns < at_ns:
                # In this order: who reads meanwhile finds no time rather than another record's.
                _TIME.pack_into(self._map, place + _TIME.size, 0)
                _TIME.pack_into(self._map, place, digest)
                _TIME.pack_into(self._map, place + _TIME.size, at_ns)

    def note_answer(self, database: str, at_ns: int) -> None:
        """Note that *database* has taken a write of the call of the place *at_ns*."""
        self.note(database, (_ANSWER,), at_ns)

    def has_answered(self, database: str, since_ns: int) -> bool:
        """Tell whether *database* has taken a write of a call behind the place *since_ns*."""
        return self.newer(database, (_ANSWER,), since_ns) > 0

    def newer(self, database: str, records: Iterable[str], than_ns: int) -> int:
        """Return how many of *records* were written by a call behind the place *than_ns*."""
        return sum(self._written_ns(self._digest(database, each)) > than_ns for each in records)

    def close(self) -> None:
        """Let go of the file."""
        self._map.close()

    def _written_ns(self, digest: int) -> int:
        slots = (_SLOT.unpack_from(self._map, place) for place in _places(digest))
        return max((ns for known, ns in slots if known == digest), default=0)

    def _digest(self, database: str, record: str) -> int:
        text = f"{database}\0{record}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(text, digest_size=_DIGEST_BYTES, key=self._key).digest())


def _places(digest: int) -> range:
    first = digest % _ROWS * _ROW_BYTES
    return range(first, first + _ROW_BYTES, _SLOT.size)
