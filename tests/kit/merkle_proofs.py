"""Merkle proofs, checked by the letter of RFC 9162: what the audit log's proofs are tested with."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.audit.proof.merkle import EMPTY_ROOT, node_hash


def verify_inclusion(
    leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes
) -> bool:
    """Return whether *path* proves *leaf* under *root*: RFC 9162 section 2.1.3.2."""
    if not 0 <= index < size:
        return False
    place, last, found = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return False
        if place & 1 or place == last:
            found = node_hash(sibling, found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and found == root


def verify_consistency(
    first: int, second: int, path: Sequence[bytes], root1: bytes, root2: bytes
) -> bool:
    """Return whether *path* proves that *root2* continues *root1*: RFC 9162 section 2.1.4.2."""
    if first in {0, second}:
        return not path and root1 == (root2 if first else EMPTY_ROOT)
    if not 0 < first < second or not path:
        return False
    hashes = list(path) if first & (first - 1) else [root1, *path]
    place, last = first - 1, second - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old = new = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            new = node_hash(new, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and old == root1 and new == root2
