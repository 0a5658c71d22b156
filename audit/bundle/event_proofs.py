"""One event of the export, and the proof that it was sealed so."""

from __future__ import annotations

import json
from binascii import b2a_base64
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from ..proof.merkle import Prover
from .contract import Evidence, SealedEvent
from .statements import event_document

ERASED = "erased"
THIRD_PARTY = "third_party"


class ProvenEvent(NamedTuple):
    """
    An event and its proof.

    Attributes:
        document: A line of events.jsonl.
        proof: A line of proofs.jsonl.
    """

    document: dict[str, Any]
    proof: dict[str, Any]

    def line(self) -> bytes:
        """Return the proof as it stands in proofs.jsonl."""
        return orjson.dumps(self.proof, option=orjson.OPT_APPEND_NEWLINE)


class EventProofs:
    """The proofs of the events in one bundle."""

    def __init__(self, evidence: Evidence) -> None:
        self._prover = Prover(evidence.hashes, evidence.size)

    def proven(self, sealed: SealedEvent) -> ProvenEvent:
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
        return ProvenEvent(document, proof)


def _withheld(header: dict[str, Any], sealed: SealedEvent) -> str | None:
    """Return why a detail is not shown. None: it is, or there never was one."""
    if header.get("detail_commit") is None:
        return None
    if sealed.detail is None:
        return ERASED
    return THIRD_PARTY if header.get("foreign_hits") else None


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


_node = lru_cache(4_096)(_base64)
"""Neighbours share most of their paths."""
