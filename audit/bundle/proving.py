"""One event with its proof: what is told of it, and what shows that it was sealed so."""

from __future__ import annotations

import json
from binascii import b2a_base64
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from ..merkle import Prover
from .contract import Evidence, Sealed
from .statements import event_document

ERASED = "erased"
THIRD_PARTY = "third_party"


class Proven(NamedTuple):
    """
    An event and its proof.

    Attributes:
        document: What is told of it: a line of events.jsonl.
        proof: What vouches for that: a line of proofs.jsonl.
    """

    document: dict[str, Any]
    proof: dict[str, Any]

    def line(self) -> bytes:
        """Return the proof as it stands in proofs.jsonl."""
        return orjson.dumps(self.proof, option=orjson.OPT_APPEND_NEWLINE)


class Proving:
    """Finds the proofs of one bundle."""

    def __init__(self, evidence: Evidence) -> None:
        self._prover = Prover(evidence.hashes, evidence.size)

    def proven(self, sealed: Sealed) -> Proven:
        """Return *sealed* with its proof."""
        header = orjson.loads(sealed.header)
        withheld = _withheld(header, sealed)
        shown = None if withheld else sealed.detail
        # By the same reader as `verify`: others read whole numbers beyond 64 bits as fractions.
        document = event_document(
            header, None if shown is None else json.loads(shown.decode()), withheld
        )
        proof = {
            "seq": sealed.seq,
            "header": _base64(sealed.header),
            "salt": None if shown is None else _base64(sealed.salt or b""),
            "detail": None if shown is None else _base64(shown),
            "withheld": withheld,
            "path": [_node(each) for each in self._prover.inclusion(sealed.seq)],
        }
        return Proven(document, proof)


def _withheld(header: dict[str, Any], sealed: Sealed) -> str | None:
    """Say why a detail is not shown. None: it is, or there never was one."""
    if header.get("detail_commit") is None:
        return None
    if sealed.detail is None:
        return ERASED
    return THIRD_PARTY if header.get("foreign_hits") else None


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


_node = lru_cache(4_096)(_base64)
"""Neighbours share most of their paths."""
