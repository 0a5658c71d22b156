"""
The records of a copy: sealed events, and signed checkpoints with the proof of their last event.

The proof makes a copy complete in itself, wherever it begins: the signed root covers the last event
of a checkpoint, and its header has the hash of the one before it, and so on.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import NamedTuple

from ..proof.merkle import Frontier, node_hash

EVENT, CHECKPOINT = "event", "checkpoint"
_TLOG_PROOF = "c2sp.org/tlog-proof@v1"


class SealedDetail(NamedTuple):
    """
    The detail of an event as the log keeps it, encrypted, without its salt.

    The salt stays with the log: with it, whoever has the copy could guess at an erased detail until
    the commitment in the header fits.

    Attributes:
        sealed: Nonce and AES-256-GCM ciphertext, bound to log, event and customer.
        expires_us: Microseconds since 1970 UTC.
    """

    subject_uid: str
    dek_id: str
    sealed: bytes
    expires_us: int


class CopyRecord(NamedTuple):
    """
    One record of a copy. Records of equal *origin*, *kind* and *seq* are the same one.

    Attributes:
        origin: The log's name.
        kind: ``event`` or ``checkpoint``.
        seq: Number of the event, from 0; of a checkpoint, how many events it covers, from 1.
        key: What keeps its order among its like: the keyed hash of its run; without a run the
            writer; of a checkpoint the log's name. No proof covers it.
        header: Canonical JSON, as it was sealed; of a checkpoint a C2SP tlog-proof, UTF-8, of its
            last event.
        leaf: ``SHA256(0x00 || header)``; of a checkpoint that of its last event. 32 bytes.
    """

    origin: str
    kind: str
    seq: int
    key: str
    header: bytes
    leaf: bytes
    detail: SealedDetail | None = None


def checkpoint_record(
    origin: str, note: str, leaf: bytes, size: int, path: list[bytes]
) -> CopyRecord:
    """Return the record of a checkpoint: *path* proves its last event, *leaf*, in its tree."""
    hashes = "".join(f"{b64encode(each).decode()}\n" for each in path)
    proof = f"{_TLOG_PROOF}\nindex {size - 1}\n{hashes}\n{note}"
    return CopyRecord(origin, CHECKPOINT, size, origin, proof.encode(), leaf)


def proven(record: CopyRecord) -> tuple[str, Frontier]:
    """
    Return the note of a checkpoint, and the tree's right edge as its proof has it.

    Raises:
        ValueError: It is not as `checkpoint_record` writes it.
    """
    proof, _, note = record.header.decode().partition("\n\n")
    path = [b64decode(each, validate=True) for each in proof.split("\n")[2:]]
    # One spelling alone, so that no byte of it may be another one.
    if checkpoint_record(record.origin, note, record.leaf, record.seq, path) != record:
        raise ValueError("a checkpoint is not a tlog-proof of its last event")
    return note, _frontier(record.leaf, record.seq, path)


def _frontier(leaf: bytes, size: int, path: Sequence[bytes]) -> Frontier:
    # All siblings of the last leaf are to its left: those in its own complete subtree, and then
    # the other subtrees of the right edge.
    inside = (size & -size).bit_length() - 1
    for each in path[:inside]:
        leaf = node_hash(each, leaf)
    return Frontier(size, [*reversed(path[inside:]), leaf])
