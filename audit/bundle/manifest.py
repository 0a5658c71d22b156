"""manifest.json: the files and their completeness; and the note that signs it."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from .archive import ArchiveMember
from .contract import DeclaredLoss, Evidence, Request, StoreReport, StoreStatus
from .statements import utc
from .summary import Summary

SPEC_VERSION = "1"
_ART_15 = (
    *("purposes", "categories", "recipients", "retention", "rights", "complaint_authority"),
    *("sources", "automated_decisions", "transfers"),
)


def manifest(
    request: Request,
    evidence: Evidence,
    summary: Summary,
    stores: Sequence[StoreReport],
    files: Sequence[ArchiveMember],
) -> bytes:
    """Return manifest.json."""
    notice = request.notice
    art15: dict[str, Any] = notice.get("art15") or {}
    document = {
        "spec_version": SPEC_VERSION,
        "request_id": request.request_id,
        "request_type": request.kind.value,
        "generated_at": utc(request.generated_us),
        "generator": {"name": "mnemoscope", "version": request.version},
        "complete": all(each.status is StoreStatus.COMPLETE for each in stores),
        "coverage": {"from": summary.all.first, "to": summary.all.last},
        "counts": {
            "events": summary.all.count,
            "accesses": summary.accesses,
            "memories": sum(each.n_memories for each in stores),
            "withheld": summary.n_withheld,
            "erased": summary.n_erased,
        },
        "stores": [_store(each, summary) for each in stores],
        "loss": [_loss(each) for each in evidence.losses],
        "controller": notice.get("controller"),
        "art15": {name: art15.get(name) for name in _ART_15}
        | {"recipients": art15.get("recipients") or "see recipients.json"},
        "log": {
            "origin": evidence.origin,
            "size": evidence.size,
            "root": base64.b64encode(evidence.root).decode(),
            "verifier_key": evidence.verifier_key,
        },
        "erased_ranges": summary.erased,
        "files": [each._asdict() for each in files],
    }
    return json_page(document)


def _loss(loss: DeclaredLoss) -> dict[str, Any]:
    return {
        "writer": loss.writer,
        "from": loss.first,
        "to": loss.last,
        "count": loss.n_events,
        "reason": loss.reason,
        "declared_at": utc(loss.declared_us),
    }


def _store(report: StoreReport, summary: Summary) -> dict[str, Any]:
    events = summary.stores.get(report.store)
    return {
        "name": report.name,
        "kind": report.store,
        "status": report.status.value,
        "n_memories": report.n_memories,
        "n_events": events.count if events else 0,
        "error": report.error,
        "asked_at": None if report.asked_us is None else utc(report.asked_us),
    }


def manifest_note(request: Request, evidence: Evidence, text: bytes) -> str:
    """Return the signed note that vouches for manifest.json, whose bytes are *text*."""
    digest = sha256(text).hexdigest()
    return evidence.sign(f"mnemoscope export {request.request_id}\nsha256 {digest}\n")


def json_page(document: dict[str, Any]) -> bytes:
    """Return *document* as JSON that a person can read."""
    return json.dumps(document, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n"
