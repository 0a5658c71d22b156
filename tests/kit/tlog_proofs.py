"""Proofs in the format of C2SP tlog-proof, read as its specification says."""

from __future__ import annotations

from base64 import b64decode
from typing import NamedTuple


class TlogProof(NamedTuple):
    """What a proof says; signatures are not looked at."""

    index: int
    path: list[bytes]
    origin: str
    size: int
    root: bytes


def read_tlog_proof(data: bytes) -> TlogProof:
    """Return what *data* says."""
    first, index, *rest = data.decode().split("\n")
    assert first == "c2sp.org/tlog-proof@v1"
    assert index.startswith("index ")
    end = rest.index("")
    origin, size, root = rest[end + 1 : end + 4]
    path = [b64decode(each) for each in rest[:end]]
    return TlogProof(int(index[6:]), path, origin, int(size), b64decode(root))
