"""One event of the export, and the proof that it was sealed so."""

from __future__ import annotations

import json
from binascii import b2a_base64
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from ..proof.merkle import Prover
from .contract import Evidence, SealedEvent
from .delivered import Receipts
from .notice import Notice
from .statements import event_document, utc

ERASED = "erased"
THIRD_PARTY = "third_party"
_DAY_US = 86_400_000_000


class ProvenEvent(NamedTuple):
    """
    An event and its proof.

    Attributes:
        document: A line of events.jsonl.
        proof: A line of proofs.jsonl.
    """

    document: dict[str, Any]
    proof: dict[str, Any]
    receipts: Receipts

    def line(self) -> bytes:
        """Return the proof as it stands in proofs.jsonl."""
        return orjson.dumps(self.proof, option=orjson.OPT_APPEND_NEWLINE)


class EventProofs:
    """The proofs of the events in one bundle."""

    def __init__(self, evidence: Evidence, notice: Notice) -> None:
        self._prover = Prover(evidence.hashes, evidence.size)
        self._deliveries = evidence.deliveries
        self._kept_us = evidence.retention_days * _DAY_US
        self._notice = notice

    def proven(self, sealed: SealedEvent) -> ProvenEvent:
        """Return *sealed* with its proof."""
        header = orjson.loads(sealed.header)
        withheld = _withheld(header, sealed)
        shown = None if withheld else sealed.detail
        receipts = self._deliveries.of(header["writer"], header["wseq"])
        stated = {
            "legal_basis": self._notice.legal_basis(header.get("purpose")),
            "retention_until": utc(header["recorded_at"] + self._kept_us)
            if self._kept_us
            else None,
            "recipients": _named(receipts, header),
        }
        # By the same reader as `verify`: others read whole numbers beyond 64 bits as fractions.
        detail = None if shown is None else json.loads(shown.decode())
        document = event_document(header, detail, withheld, stated)
        proof = {
            "seq": sealed.seq,
            "header": _base64(sealed.header),
            "salt": None if shown is None else _base64(sealed.salt or b""),
            "detail": None if shown is None else _base64(shown),
            "withheld": withheld,
            "stated": stated,
            "path": [_node(each) for each in self._prover.inclusion(sealed.seq)],
        }
        return ProvenEvent(document, proof, receipts)


def _named(receipts: Receipts, header: dict[str, Any]) -> list[str] | None:
    """Return the names of who received an event. None: it cannot be told."""
    # A part of the recipients would read like all of them.
    if not receipts.is_known:
        return None
    names = [each.sink for each in receipts.certain if each.is_about_people]
    usage = header.get("usage")
    # A provider is no sink, and has what the agent put into its prompt.
    return [*names, usage["provider"] or usage["model"]] if usage else names


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
