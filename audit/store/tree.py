"""The log's stored Merkle tree: leaves with their events, complete subtrees as tiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from ..database.database import blob
from ..database.errors import UNREADABLE, TamperedError
from ..proof.merkle import HASH_BYTES, TILE_LEAVES, Frontier, Prover, implied_root, leaf_hash
from ..record.rows import StoredEvent
from .snapshot import Snapshot


class StoredHashes:
    """The `merkle.Hashes` of a log. Leaf hashes stay when retention removes their events."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.size = snapshot.size

    def leaves(self, start: int, stop: int, /) -> Sequence[bytes]:
        """Return the leaf hashes of ``[start, stop)``."""
        # Leaves of removed events are in tiles of 256, those of the others with their events.
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


class SealedEvents:
    """The events that the head of a log hangs on, which whoever has no key can add none to."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._proven: set[int] = set()

    @cached_property
    def _tree(self) -> tuple[Prover, bytes]:
        snapshot = self._snapshot
        snapshot.check_head()
        root = Frontier.from_bytes(snapshot.size, blob(snapshot.head["frontier"])).root()
        return Prover(StoredHashes(snapshot), snapshot.size), root

    def check(self, seq: int, header: bytes) -> None:
        """
        Check that an event is one of them.

        Raises:
            TamperedError: It is not.
            KeyMissingError: The log was written with other secrets.
        """
        try:
            is_sealed = self._is_sealed(seq, leaf_hash(header))
        except UNREADABLE:
            is_sealed = False
        if not is_sealed:
            raise TamperedError(f"event {seq} is not one of those that were sealed")

    def _is_sealed(self, seq: int, leaf: bytes) -> bool:
        prover, root = self._tree
        known, tile = prover.leaf(seq), seq // TILE_LEAVES
        if tile not in self._proven:
            # The path has all other leaves of the tile in it: one proof is for each of them.
            if implied_root(known, seq, prover.size, prover.inclusion(seq)) != root:
                return False
            self._proven.add(tile)
        return known == leaf

    def among(self, found: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
        """Yield what was *found*, each checked; raises as `check` does."""
        for each in found:
            self.check(each.seq, each.header)
            yield each
