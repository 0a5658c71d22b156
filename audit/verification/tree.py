"""The check of every checkpoint and tile against a Merkle tree that is computed anew."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..database.database import blob
from ..proof.merkle import Frontier, Subtree, Tile, subtrees
from ..proof.note import parse_checkpoint, verified
from ..store.heads import signed_us_of
from ..store.snapshot import Snapshot

UNSIGNED = "is not signed by the log"
BEYOND = "is of more events than there are: the log was cut, or an old copy put back"


class TreeGrowth:
    """
    A tree that is computed anew, with its roots at certain sizes.

    Args:
        frontier: Where it begins.
        sizes: Where its root is wanted.

    Attributes:
        wrong: Tiles that are not as they should be.
    """

    def __init__(self, frontier: Frontier, sizes: Iterable[int], snapshot: Snapshot) -> None:
        self.frontier = frontier
        self.roots: dict[int, bytes] = {}
        self.wrong: list[str] = []
        self._snapshot = snapshot
        self._wanted = frozenset(sizes)
        self._sizes = sorted(self._wanted)
        self._reached()

    def grow(self, leaves: Sequence[bytes]) -> None:
        """Add *leaves*."""
        start = self.frontier.size
        self.graft(cut(start, leaves, self.sizes_in(start, start + len(leaves))))

    def graft(self, grown: Iterable[Subtree]) -> None:
        """Add what `cut` made of leaves."""
        for each in grown:
            for tile in self.frontier.graft(each):
                self._compare(tile)
            self._reached()

    def sizes_in(self, start: int, stop: int) -> list[int]:
        """Return the sizes in between at which the root is wanted."""
        return self._sizes[bisect_right(self._sizes, start) : bisect_left(self._sizes, stop)]

    def _reached(self) -> None:
        # Roots are computed at the sizes that somebody has signed: one at every size would be
        # quadratic.
        if self.frontier.size in self._wanted:
            self.roots[self.frontier.size] = self.frontier.root()

    def _compare(self, tile: Tile) -> None:
        kept: Any = self._snapshot.execute(
            "SELECT hash FROM audit_tile WHERE level = ? AND idx = ?", (tile.level, tile.idx)
        ).fetchone()
        if kept is None or blob(kept[0]) != tile.hash:
            self.wrong.append(f"tile {tile.level}/{tile.idx} does not match its events")


def cut(start: int, leaves: Sequence[bytes], sizes: Sequence[int]) -> Iterator[Subtree]:
    """Yield subtrees of leaves from place *start* on, such that none goes beyond one of *sizes*."""
    at = 0
    for size in (*sizes, start + len(leaves)):
        yield from subtrees(start + at, leaves[at : size - start])
        at = size - start


class StoredCheckpoint(NamedTuple):
    """A checkpoint as the log keeps it; see `schema`."""

    size: int
    root: bytes
    note: str
    key_id: str


def kept_checkpoints(snapshot: Snapshot, since: int) -> list[StoredCheckpoint]:
    """Return the checkpoints of *since* events and more."""
    found: list[Any] = snapshot.execute(
        "SELECT size, root, note, key_id FROM audit_checkpoint WHERE size >= ? ORDER BY size",
        (since,),
    ).fetchall()
    return [StoredCheckpoint(size, blob(root), note, key_id) for size, root, note, key_id in found]


def size_of(note: str) -> int:
    """Return how many events a checkpoint is of; -1: it is none."""
    try:
        return parse_checkpoint(note).size
    except ValueError:
        return -1


class CheckpointResult(NamedTuple):
    """
    The result of checking a checkpoint.

    Attributes:
        size: Of how many events it is.
        is_own: Whether it is signed with a secret that is here.
        wrong: What is wrong with it. Empty: nothing.
    """

    size: int
    is_own: bool
    wrong: str


class Notary:
    """
    The keys whose signatures are the log's.

    Args:
        own: Verifier keys of the secrets that are here.
        named: Those that the log names.
    """

    def __init__(self, origin: str, own: Iterable[str], named: Iterable[str]) -> None:
        self._origin = origin
        self._own = tuple(own)
        self._named = tuple(named)
        self.key_ids = {key.split("+", 2)[1] for key in (*self._own, *self._named)}

    def checked(self, note: str, roots: dict[int, bytes]) -> CheckpointResult:
        """Hold a note against the roots there were, by size."""
        # A key that only the log names proves less: who has the database could have named it.
        is_own = any(verified(note, key) for key in self._own)
        if not is_own and not any(verified(note, key) for key in self._named):
            return CheckpointResult(size_of(note), is_own, UNSIGNED)
        return CheckpointResult(size_of(note), is_own, self._wrong_with(note, roots))

    def _wrong_with(self, note: str, roots: dict[int, bytes]) -> str:
        try:
            claimed = parse_checkpoint(note)
        except ValueError:
            return "is no checkpoint"
        if claimed.origin != self._origin:
            return "is of another log"
        # Every size that a note names was asked for, so that none here is beyond the log.
        root = roots.get(claimed.size)
        if root is None:
            return BEYOND
        return "" if root == claimed.root else "has another root than its events"


def check_kept(kept: StoredCheckpoint, notary: Notary, roots: dict[int, bytes]) -> CheckpointResult:
    """Hold one of the log's own checkpoints against the tree."""
    checked = notary.checked(kept.note, roots)
    wrong = checked.wrong or _wrong_columns(kept, notary)
    return checked._replace(
        size=kept.size, wrong=wrong and f"the checkpoint of {kept.size:,} events {wrong}"
    )


def _wrong_columns(kept: StoredCheckpoint, notary: Notary) -> str:
    claimed = parse_checkpoint(kept.note)
    if (claimed.size, claimed.root) != (kept.size, kept.root):
        return "is not what its columns say"
    return "" if kept.key_id in notary.key_ids else "names a key that is not the log's"


def check_from_elsewhere(note: str, notary: Notary, roots: dict[int, bytes]) -> CheckpointResult:
    """Hold a checkpoint that was kept elsewhere against the tree."""
    checked = notary.checked(note, roots)
    wrong = checked.wrong
    return checked._replace(wrong=wrong and f"a checkpoint kept elsewhere {wrong}")


def check_head(note: str, notary: Notary, roots: dict[int, bytes]) -> CheckpointResult:
    """Hold the signed end of the log against the tree."""
    checked = notary.checked(note, roots)
    wrong = checked.wrong or ("" if signed_us_of(note) is not None else "is another checkpoint")
    return checked._replace(wrong=wrong and f"the signed end of the log {wrong}")
