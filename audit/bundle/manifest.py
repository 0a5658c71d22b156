"""manifest.json: the files and their completeness; and the note that signs it."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from .archive import ArchiveMember
from .contract import Anchor, DeclaredLoss, Evidence, Request, StoreReport
from .facts import BundleFacts
from .notice import ART_15, CONTROLLER, SUBJECT
from .statements import utc
from .summary import EventSummary

SPEC_VERSION = "2"


def manifest(facts: BundleFacts, files: Sequence[ArchiveMember]) -> bytes:
    """Return manifest.json."""
    request, evidence, summary = facts.request, facts.evidence, facts.summary
    notice = request.notice
    document = {
        "spec_version": SPEC_VERSION,
        "request_id": request.request_id,
        "request_type": request.kind.value,
        "generated_at": utc(request.generated_us),
        "generator": {"name": "mnemoscope", "version": request.version},
        "subject": {
            "ref": facts.subject.ref,
            "identifiers_matched": [each._asdict() for each in facts.subject.identifiers],
            **{name: notice.subject.get(name) for name in SUBJECT},
        },
        "complete": not facts.incomplete,
        "incomplete": facts.incomplete,
        "coverage": {"from": summary.all.first, "to": summary.all.last},
        "counts": facts.counts._asdict(),
        "stores": [_store(each, summary) for each in facts.stores],
        "loss": [_loss(each) for each in evidence.losses],
        "controller": {name: notice.controller.get(name) for name in CONTROLLER},
        "art15": _art15(facts),
        "log": {
            "origin": evidence.origin,
            "size": evidence.size,
            "root": base64.b64encode(evidence.root).decode(),
            "verifier_key": evidence.verifier_key,
            "checkpoint_time": utc(evidence.signed_us),
            "anchors": [_anchor(each) for each in evidence.anchors],
        },
        "erased_ranges": summary.erased,
        "files": [each._asdict() for each in files],
    }
    return json_page(document)


def _art15(facts: BundleFacts) -> dict[str, Any]:
    """Return what the operator states, and else what the events and settings say."""
    stated = facts.request.notice.art15
    found = {
        "purposes": sorted(filter(None, facts.summary.purposes)) or None,
        "categories": facts.categories,
        "recipients": "see recipients.json",
        "retention": facts.retention,
        "rights": "rectification, erasure, restriction, objection, complaint (Art. 16 to 21, 77)",
        "sources": sorted(filter(None, facts.summary.sources)) or None,
    }
    return {name: stated.get(name) or found.get(name) for name in ART_15}


def _anchor(anchor: Anchor) -> dict[str, Any]:
    return {
        "size": anchor.size,
        "root": base64.b64encode(anchor.root).decode(),
        "signed_at": utc(anchor.signed_us),
        "sent_to": list(anchor.sent_to),
    }


def _loss(loss: DeclaredLoss) -> dict[str, Any]:
    return {
        "writer": loss.writer,
        "from": loss.first,
        "to": loss.last,
        "count": loss.n_events,
        "reason": loss.reason,
        "declared_at": utc(loss.declared_us),
    }


def _store(report: StoreReport, summary: EventSummary) -> dict[str, Any]:
    events = summary.stores.get(report.store)
    return {
        "name": report.name,
        "kind": report.store,
        "status": report.status.value,
        "n_memories": report.n_memories,
        "n_beside": report.n_beside,
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
    # A store may hold lone surrogates, which are no UTF-8: one of them must not end the export.
    return json.dumps(document, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n"
