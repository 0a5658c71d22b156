"""
The Merkle tree of RFC 6962 and RFC 9162 section 2.1, over SHA-256.

Any root of a log commits to every event before it, in order. That an event is under a root, and
that a later root continues an earlier one, is proved by a few hashes. A `Frontier` grows a tree and
holds no more than one hash for each bit of its size. A `Prover` finds proofs in a tree that lies
elsewhere: it reads tiles of 256 hashes, and remembers the last ones.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple, Protocol

HASH_BYTES = 32
EMPTY_ROOT = sha256(b"").digest()

TILE_BITS = 8
TILE_LEAVES = 1 << TILE_BITS
_TILES_HELD = 64


class Tile(NamedTuple):
    """
    The root of a complete subtree of ``256 ** level`` leaves, the *idx*-th of its level.

    Level 1 covers 256 leaves, level 2 65,536.
    """

    level: int
    idx: int
    hash: bytes


class Subtree(NamedTuple):
    """The *root* of a complete subtree of ``2 ** height`` leaves."""

    height: int
    root: bytes


class TreeHashes(Protocol):
    """A tree that is stored somewhere: its leaf hashes, and such tiles as were kept."""

    def leaves(self, start: int, stop: int, /) -> Sequence[bytes]:
        """Return the leaf hashes of ``[start, stop)``."""
        ...

    def tile(self, level: int, idx: int, /) -> bytes | None:
        """Return the hash of a `Tile`, or None where it was not kept: it is computed then."""
        ...


# Leaves and nodes begin with another byte each, as in RFC 9162: else the two hashes below a node
# could be shown as an event whose hash is the node's.


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf: ``SHA256(0x00 || data)``."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node: ``SHA256(0x01 || left || right)``."""
    return sha256(b"\x01" + left + right).digest()


def implied_root(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root of the tree in which *path* proves *leaf*: RFC 9162 section 2.1.3.2."""
    place, last, found = index, size - 1, leaf
    for each in path:
        # A path that goes on above the root: a proof has one shape, and no other is taken.
        if last == 0:
            return None
        if place & 1 or place == last:
            found = node_hash(each, found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = node_hash(found, each)
        place, last = place >> 1, last >> 1
    # One that ends below it proves that the leaf is in some tree, not in this one.
    return found if last == 0 else None


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root over leaf hashes; of none, ``SHA256(b"")``."""
    frontier = Frontier()
    frontier.extend(leaves)
    return frontier.root()


def _parents(hashes: Sequence[bytes]) -> list[bytes]:
    """Return the level above; an odd one out has no parent yet and is left out."""
    pairs = zip(hashes[::2], hashes[1::2], strict=False)
    # `node_hash`, written out: calls add up over millions of nodes.
    return [sha256(b"\x01" + left + right).digest() for left, right in pairs]


def _perfect_root(hashes: Sequence[bytes]) -> bytes:
    while len(hashes) > 1:
        hashes = _parents(hashes)
    return hashes[0]


def subtrees(start: int, leaves: Sequence[bytes]) -> Iterator[Subtree]:
    """Yield the largest complete subtrees, of a tile at most, of leaves from place *start* on."""
    at, end = 0, len(leaves)
    while at < end:
        place = start + at
        # A complete subtree begins at a multiple of its size: the lowest bit that is set is its
        # largest.
        zeros = (place & -place).bit_length() - 1 if place else TILE_BITS
        height = min(zeros, TILE_BITS, (end - at).bit_length() - 1)
        after = at + (1 << height)
        yield Subtree(height, _perfect_root(leaves[at:after]))
        at = after


class Frontier:
    """
    The right edge of a growing tree: the roots of its complete subtrees, largest first.

    Args:
        size: Number of leaves so far.
        hashes: One for each bit that is set in *size*.

    Raises:
        ValueError: There are more or fewer.
    """

    __slots__ = ("_hashes", "_size")

    def __init__(self, size: int = 0, hashes: Iterable[bytes] = ()) -> None:
        self._size = size
        self._hashes = list(hashes)
        if size < 0 or len(self._hashes) != size.bit_count():
            raise ValueError(f"a frontier of {size} leaves has {max(size, 0).bit_count()} hashes")

    @classmethod
    def from_bytes(cls, size: int, data: bytes) -> Frontier:
        """
        Return the frontier that `to_bytes` wrote.

        Raises:
            ValueError: It is not one of *size* leaves.
        """
        if len(data) % HASH_BYTES:
            raise ValueError(f"a frontier is made of hashes of {HASH_BYTES} bytes")
        starts = range(0, len(data), HASH_BYTES)
        return cls(size, [data[start : start + HASH_BYTES] for start in starts])

    def to_bytes(self) -> bytes:
        """Return the hashes, one after the other; the size is not among them."""
        return b"".join(self._hashes)

    @property
    def size(self) -> int:
        """Number of leaves."""
        return self._size

    def append(self, leaf: bytes) -> list[Tile]:
        """Add one leaf hash, and return the tiles that it completed."""
        return self.graft(Subtree(0, leaf))

    def extend(self, leaves: Sequence[bytes]) -> list[Tile]:
        """Add leaf hashes, and return the tiles that they completed. Faster than one by one."""
        done: list[Tile] = []
        for each in subtrees(self._size, leaves):
            done += self.graft(each)
        return done

    def graft(self, subtree: Subtree) -> list[Tile]:
        """Add the leaves of *subtree*, as `extend` does; the size is a multiple of how many."""
        done: list[Tile] = []
        height, root = subtree
        place = self._size >> height
        self._size += 1 << height
        while True:
            # Height 0 is a leaf, which is stored as one.
            if height and height % TILE_BITS == 0:
                done.append(Tile(height // TILE_BITS, place, root))
            # A left child: its sibling is not there yet, so that it stays on the edge.
            if not place & 1:
                break
            root = sha256(b"\x01" + self._hashes.pop() + root).digest()
            place >>= 1
            height += 1
        self._hashes.append(root)
        return done

    def root(self) -> bytes:
        """Return the root of the tree so far."""
        return _folded(self._hashes)


def _folded(hashes: Sequence[bytes]) -> bytes:
    """Return the root over complete subtrees, largest first."""
    if not hashes:
        return EMPTY_ROOT
    root = hashes[-1]
    for left in hashes[-2::-1]:
        root = node_hash(left, root)
    return root


class Prover:
    """
    Finds proofs in the tree of the first *size* leaves of *hashes*. Not thread-safe.

    Neighbouring leaves share most of their proofs, so asked in order it reads each tile once.
    """

    def __init__(self, hashes: TreeHashes, size: int) -> None:
        self.size = size
        self._hashes = hashes
        self._blocks: OrderedDict[tuple[int, int], list[Sequence[bytes]]] = OrderedDict()
        # The tree is a few complete subtrees, for each bit of its size one: paths differ inside of
        # one alone.
        self._pieces = list(_pieces(0, size))
        self._roots = [self._node(height, place) for height, place in self._pieces]
        self._rest = [_folded(self._roots[place:]) for place in range(1, len(self._roots))]

    def root(self) -> bytes:
        """Return the root of the tree."""
        return _folded(self._roots)

    def frontier(self) -> Frontier:
        """Return the tree's right edge, to go on from there."""
        return Frontier(self.size, self._roots)

    def leaf(self, index: int) -> bytes:
        """Return a leaf, as `inclusion` takes it for its neighbours' paths."""
        return self._node(0, index)

    def inclusion(self, index: int) -> list[bytes]:
        """
        Return the audit path of a leaf: RFC 9162 section 2.1.3.1.

        Raises:
            ValueError: There is no leaf *index*.
        """
        if not 0 <= index < self.size:
            raise ValueError(f"there is no leaf {index} in a tree of {self.size}")
        number = self._piece_of(index)
        path = self._inside(index, self._pieces[number][0])
        # All subtrees to the right are one sibling: RFC 9162 splits at the largest power of two.
        path += self._rest[number : number + 1]
        # Those to the left are one each, the nearest first.
        path += reversed(self._roots[:number])
        return path

    def _piece_of(self, index: int) -> int:
        end = 0
        for number, (height, _place) in enumerate(self._pieces):
            end += 1 << height
            if index < end:
                return number
        raise AssertionError

    def _inside(self, index: int, height: int) -> list[bytes]:
        """Return the siblings from a leaf up to the root of its complete subtree."""
        path: list[bytes] = []
        for level in range(-(-height // TILE_BITS)):
            rows = self._block(level, index >> TILE_BITS)
            inner = index % TILE_LEAVES
            # In the topmost tile, up to the root of the subtree and not further.
            ups = min(TILE_BITS, height - level * TILE_BITS)
            path += [rows[up][(inner >> up) ^ 1] for up in range(ups)]
            index >>= TILE_BITS
        return path

    def consistency(self, first: int) -> list[bytes]:
        """
        Return the proof that this tree continues that of *first* leaves: RFC 9162 section 2.1.4.1.

        Raises:
            ValueError: This tree is smaller.
        """
        if not 0 <= first <= self.size:
            raise ValueError(f"a tree of {self.size} cannot continue one of {first}")
        path: list[bytes] = []
        start, stop = 0, self.size
        while first and stop != first:
            # The largest power of two that is smaller: where RFC 9162 splits.
            middle = start + (1 << (stop - start - 1).bit_length() - 1)
            if first <= middle:
                path.append(self._range(middle, stop))
                stop = middle
            else:
                path.append(self._range(start, middle))
                start = middle
        # Else the smaller tree is a whole subtree of this one, and its root is known to whoever
        # asks.
        if start:
            path.append(self._range(start, stop))
        # Found from the root down, and read from the leaves up.
        return path[::-1]

    def _range(self, start: int, stop: int) -> bytes:
        return _folded([self._node(*piece) for piece in _pieces(start, stop)])

    def _node(self, height: int, place: int) -> bytes:
        """Return the root of the *place*-th complete subtree of ``2 ** height`` leaves."""
        level, up = divmod(height, TILE_BITS)
        shift = TILE_BITS - up
        rows = self._block(level, place >> shift)
        return rows[up][place & ((1 << shift) - 1)]

    def _block(self, level: int, idx: int) -> list[Sequence[bytes]]:
        """Return up to 256 hashes of a level, and the levels above them up to their one root."""
        key = (level, idx)
        rows = self._blocks.get(key)
        if rows is not None:
            self._blocks.move_to_end(key)
            return rows
        rows = [self._row(level, idx)]
        # An incomplete tile, at the tree's end, has fewer levels: an odd one has no parent here.
        while len(rows[-1]) > 1:
            rows.append(_parents(rows[-1]))
        self._blocks[key] = rows
        if len(self._blocks) > _TILES_HELD:
            self._blocks.popitem(last=False)
        return rows

    def _row(self, level: int, idx: int) -> Sequence[bytes]:
        start = idx << TILE_BITS
        stop = min(start + TILE_LEAVES, self.size >> (level * TILE_BITS))
        if level == 0:
            return self._hashes.leaves(start, stop)
        return [self._tile(level, place) for place in range(start, stop)]

    def _tile(self, level: int, idx: int) -> bytes:
        return self._hashes.tile(level, idx) or self._block(level - 1, idx)[TILE_BITS][0]


def _pieces(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield height and place of the complete subtrees of an aligned range, largest first."""
    for height in range((stop - start).bit_length() - 1, -1, -1):
        if (stop - start) >> height & 1:
            yield height, start >> height
            start += 1 << height
