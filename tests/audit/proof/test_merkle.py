"""The Merkle tree: the vectors of Certificate Transparency, and a naive tree for all the rest."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.audit.proof.merkle import (
    EMPTY_ROOT,
    Frontier,
    Prover,
    leaf_hash,
    node_hash,
    root_of,
)
from tests.kit.merkle_proofs import verify_consistency, verify_inclusion

LARGEST = 1_025

CT_LEAVES = [
    bytes.fromhex(text)
    for text in (
        *("", "00", "10", "2021", "3031", "40414243"),
        *("5051525354555657", "606162636465666768696a6b6c6d6e6f"),
    )
]
CT_ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
CT_INCLUSION = [
    (0, 1, []),
    (
        0,
        8,
        [
            "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
        ],
    ),
    (
        5,
        8,
        [
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ],
    ),
    (2, 3, ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
    (
        1,
        5,
        [
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        ],
    ),
]
CT_CONSISTENCY = [
    (1, 1, []),
    (1, 8, CT_INCLUSION[1][2]),
    (
        6,
        8,
        [
            "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ],
    ),
    (
        2,
        5,
        [
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        ],
    ),
]


class Stored:
    """A tree in a list, with or without the tiles that were kept of it."""

    def __init__(self, leaves, *, with_tiles=True):
        self._leaves = leaves
        tiles = Frontier().extend(leaves) if with_tiles else ()
        self._tiles = {(tile.level, tile.idx): tile.hash for tile in tiles}

    def leaves(self, start, stop):
        return self._leaves[start:stop]

    def tile(self, level, idx):
        return self._tiles.get((level, idx))


def some_leaves(count):
    """Return leaf hashes that differ."""
    return [leaf_hash(number.to_bytes(4, "big")) for number in range(count)]


LEAVES = some_leaves(LARGEST)


def naive_root(leaves):
    """Return the root, word for word as RFC 9162 section 2.1.1 defines it."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = largest_power_below(len(leaves))
    return node_hash(naive_root(leaves[:k]), naive_root(leaves[k:]))


def naive_path(m, leaves):
    """Return the audit path, word for word as RFC 9162 section 2.1.3.1 defines it."""
    if len(leaves) == 1:
        return []
    k = largest_power_below(len(leaves))
    if m < k:
        return [*naive_path(m, leaves[:k]), naive_root(leaves[k:])]
    return [*naive_path(m - k, leaves[k:]), naive_root(leaves[:k])]


def naive_proof(m, leaves, whole=True):
    """Return SUBPROOF, word for word as RFC 9162 section 2.1.4.1 defines it."""
    if m == len(leaves):
        return [] if whole else [naive_root(leaves)]
    k = largest_power_below(len(leaves))
    if m <= k:
        return [*naive_proof(m, leaves[:k], whole), naive_root(leaves[k:])]
    return [*naive_proof(m - k, leaves[k:], False), naive_root(leaves[:k])]


def largest_power_below(n):
    k = 1
    while k * 2 < n:
        k *= 2
    return k


sizes = st.integers(1, LARGEST)
places = st.tuples(sizes, st.integers(0, LARGEST)).map(lambda both: (both[1] % both[0], both[0]))
pairs = st.tuples(sizes, sizes).map(sorted)


@pytest.mark.parametrize("size", range(1, 9))
def test_roots_are_those_of_certificate_transparency(size):
    """The reference trees of one to eight leaves."""
    leaves = [leaf_hash(data) for data in CT_LEAVES[:size]]

    assert root_of(leaves).hex() == CT_ROOTS[size - 1]


def test_the_root_of_nothing_is_the_hash_of_nothing():
    """As RFC 9162 says, and so for a frontier that nobody has touched."""
    assert root_of([]) == Frontier().root() == EMPTY_ROOT == sha256().digest()


@pytest.mark.parametrize(("index", "size", "path"), CT_INCLUSION)
def test_audit_paths_are_those_of_certificate_transparency(index, size, path):
    """The reference paths, found and accepted."""
    leaves = [leaf_hash(data) for data in CT_LEAVES]

    found = Prover(Stored(leaves), size).inclusion(index)
    assert [each.hex() for each in found] == path
    root = bytes.fromhex(CT_ROOTS[size - 1])
    assert verify_inclusion(leaves[index], index, size, found, root)


@pytest.mark.parametrize(("first", "second", "path"), CT_CONSISTENCY)
def test_consistency_proofs_are_those_of_certificate_transparency(first, second, path):
    """The reference proofs, found and accepted."""
    found = Prover(Stored([leaf_hash(data) for data in CT_LEAVES]), second).consistency(first)

    assert [each.hex() for each in found] == path
    roots = [bytes.fromhex(CT_ROOTS[size - 1]) for size in (first, second)]
    assert verify_consistency(first, second, found, *roots)


@given(sizes)
def test_roots_are_those_of_the_definition(size):
    """For every size, one by one and all at once."""
    frontier = Frontier()
    for leaf in LEAVES[:size]:
        frontier.append(leaf)

    assert frontier.root() == root_of(LEAVES[:size]) == naive_root(LEAVES[:size])


@given(places, st.booleans())
def test_audit_paths_are_those_of_the_definition(place, with_tiles):
    """For every leaf of every size, whichever tiles are kept."""
    index, size = place
    path = Prover(Stored(LEAVES, with_tiles=with_tiles), size).inclusion(index)

    assert path == naive_path(index, LEAVES[:size])
    assert verify_inclusion(LEAVES[index], index, size, path, naive_root(LEAVES[:size]))


@given(pairs, st.booleans())
def test_consistency_proofs_are_those_of_the_definition(pair, with_tiles):
    """For every pair of sizes, whichever tiles are kept."""
    first, second = pair
    path = Prover(Stored(LEAVES, with_tiles=with_tiles), second).consistency(first)

    assert path == naive_proof(first, LEAVES[:second])
    roots = naive_root(LEAVES[:first]), naive_root(LEAVES[:second])
    assert verify_consistency(first, second, path, *roots)


@given(places, st.data())
def test_an_audit_path_proves_nothing_else(place, data):
    """Another leaf, place, size, root, or a path that is changed, cut or longer: refused."""
    index, size = place
    leaf, root = LEAVES[index], naive_root(LEAVES[:size])
    path = naive_path(index, LEAVES[:size])
    assert verify_inclusion(leaf, index, size, path, root)

    other = leaf_hash(b"other")
    assert not verify_inclusion(other, index, size, path, root)
    assert not verify_inclusion(leaf, index, size, path, other)
    assert not verify_inclusion(leaf, index, size, [*path, other], root)
    assert not verify_inclusion(leaf, size, size, path, root)
    assert not verify_inclusion(leaf, -1, size, path, root)
    if path:
        changed = data.draw(st.integers(0, len(path) - 1))
        elsewhere = data.draw(st.integers(0, size - 1).filter(lambda each: each != index))
        assert not verify_inclusion(leaf, elsewhere, size, path, root)
        assert not verify_inclusion(leaf, index, size, path[:-1], root)
        path[changed] = other
        assert not verify_inclusion(leaf, index, size, path, root)


@given(pairs.filter(lambda pair: pair[0] < pair[1]), st.data())
def test_a_consistency_proof_proves_nothing_else(pair, data):
    """Other roots, or a proof that is changed, cut or longer: refused."""
    first, second = pair
    roots = naive_root(LEAVES[:first]), naive_root(LEAVES[:second])
    path = naive_proof(first, LEAVES[:second])
    assert verify_consistency(first, second, path, *roots)

    other = leaf_hash(b"other")
    assert not verify_consistency(first, second, path, other, roots[1])
    assert not verify_consistency(first, second, path, roots[0], other)
    assert not verify_consistency(first, second, [*path, other], *roots)
    assert not verify_consistency(first, second, path[:-1], *roots)
    assert not verify_consistency(second, first, path, *roots[::-1])
    path[data.draw(st.integers(0, len(path) - 1))] = other
    assert not verify_consistency(first, second, path, *roots)


def test_trees_of_the_same_size_are_consistent_when_their_roots_are_equal():
    """And the empty one with every later one; neither needs a proof."""
    root, other = naive_root(LEAVES[:3]), naive_root(LEAVES[:4])

    assert verify_consistency(3, 3, [], root, root)
    assert not verify_consistency(3, 3, [], root, other)
    assert not verify_consistency(3, 3, [other], root, root)
    assert verify_consistency(0, 3, [], EMPTY_ROOT, root)
    assert not verify_consistency(0, 3, [], other, root)


@given(st.integers(0, LARGEST), st.integers(0, LARGEST))
def test_a_frontier_goes_on_where_its_bytes_left_off(first, more):
    """What was written down and read again grows to the same roots and tiles."""
    kept = Frontier()
    kept.extend(LEAVES[:first])
    read = Frontier.from_bytes(kept.size, kept.to_bytes())

    assert (read.size, read.root()) == (first, kept.root())
    assert read.extend(LEAVES[:more]) == kept.extend(LEAVES[:more])
    assert (read.size, read.root()) == (first + more, kept.root())


@given(st.lists(st.integers(0, 700), max_size=4))
def test_however_leaves_are_added_the_tiles_are_the_same(parts):
    """One by one and in pieces of any length; each tile once, when its last leaf came."""
    leaves = some_leaves(sum(parts))
    singly, pieces = Frontier(), Frontier()
    tiles = [tile for leaf in leaves for tile in singly.append(leaf)]
    at, found = 0, []
    for part in parts:
        found += pieces.extend(leaves[at : at + part])
        at += part

    assert found == tiles
    assert [tile.idx for tile in tiles] == list(range(len(leaves) // 256))
    assert all(
        tile.hash == naive_root(leaves[tile.idx * 256 : tile.idx * 256 + 256]) for tile in tiles
    )


@pytest.mark.parametrize(("size", "data"), [(1, b""), (0, bytes(32)), (3, bytes(33)), (-1, b"")])
def test_a_frontier_of_the_wrong_length_is_refused(size, data):
    """Else a damaged head would silently grow another tree."""
    with pytest.raises(ValueError, match="frontier"):
        Frontier.from_bytes(size, data)


def test_a_tree_of_two_levels_of_tiles_is_proved():
    """65,536 leaves and more: proofs cross from the tiles of one level to those of the next."""
    leaves = some_leaves(65_536 + 256 + 3)
    stored = Stored(leaves)
    prover = Prover(stored, len(leaves))
    root = root_of(leaves)

    assert prover.root() == root
    assert stored.tile(2, 0) == root_of(leaves[:65_536])
    for index in (0, 255, 256, 40_000, 65_535, 65_536, 65_791, 65_792, 65_794):
        path = prover.inclusion(index)
        assert verify_inclusion(leaves[index], index, len(leaves), path, root)
    for first in (1, 255, 256, 65_535, 65_536, 65_537, 65_794):
        proof = prover.consistency(first)
        assert verify_consistency(first, len(leaves), proof, root_of(leaves[:first]), root)


def test_neighbouring_proofs_read_each_leaf_once():
    """A million proofs, in order, are one pass over the log, not a million."""
    asked = []

    class Counting(Stored):
        def leaves(self, start, stop):
            asked.append((start, stop))
            return super().leaves(start, stop)

    prover = Prover(Counting(LEAVES), LARGEST)
    for index in range(LARGEST):
        prover.inclusion(index)

    assert len(asked) == len(set(asked)) == 5


@pytest.mark.parametrize("index", [-1, 3])
def test_what_is_not_in_the_tree_has_no_proof(index):
    """An index beyond the size is a mistake, not an empty path."""
    with pytest.raises(ValueError, match="no leaf"):
        Prover(Stored(LEAVES), 3).inclusion(index)
    with pytest.raises(ValueError, match="cannot continue"):
        Prover(Stored(LEAVES), 3).consistency(4 if index > 0 else -1)
