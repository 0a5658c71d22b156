"""The log's stored Merkle tree: leaves with their events, complete subtrees as tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..proof.merkle import HASH_BYTES, TILE_LEAVES
from .snapshot import Snapshot


class StoredHashes:
    """
    The `merkle.Hashes` of a log. Leaf hashes stay when retention removes their events.

    Args:
        snapshot: One moment of the log.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.size = snapshot.size

    def leaves(self, start: int, stop: int, /) -> Sequence[bytes]:
        """Return the leaf hashes of ``[start, stop)``."""
        kept = max(start, min(stop, self._snapshot.first_seq))
        found: list[Any] = self._snapshot.execute(
            "SELECT leaf FROM audit_event WHERE seq >= ? AND seq < ? ORDER BY seq", (kept, stop)
        ).fetchall()
        return [*self._pruned(start, kept), *(leaf for (leaf,) in found)]

    def _pruned(self, start: int, stop: int) -> Sequence[bytes]:
        if start >= stop:
            return ()
        first = start // TILE_LEAVES
        found: list[Any] = self._snapshot.execute(
            "SELECT hash FROM audit_tile WHERE level = 0 AND idx >= ? AND idx <= ? ORDER BY idx",
            (first, (stop - 1) // TILE_LEAVES),
        ).fetchall()
        data = b"".join(each for (each,) in found)
        places = range(start - first * TILE_LEAVES, stop - first * TILE_LEAVES)
        return [data[place * HASH_BYTES : (place + 1) * HASH_BYTES] for place in places]

    def tile(self, level: int, idx: int, /) -> bytes | None:
        """Return the root of a complete subtree."""
        found: Any = self._snapshot.execute(
            "SELECT hash FROM audit_tile WHERE level = ? AND idx = ?", (level, idx)
        ).fetchone()
        return None if found is None else found[0]
