"""
The receipt of an erasure: a signed zip file for the customer, which ``verify.py`` in it checks.

It has what the log's own events say of the request, with their proofs, and the ids that the
customer was known by. It holds nothing else of them. It is theirs: no copy is kept.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..bundle.alone import verify_alone
from ..bundle.archive import archive_at
from ..bundle.contract import Evidence, SealedEvent
from ..bundle.event_proofs import EventProofs, ProvenEvent
from ..bundle.manifest import SPEC_VERSION, json_page
from ..bundle.notice import Notice
from ..bundle.source import evidence_of
from ..bundle.statements import event_line, utc
from ..database.database import among, blob, log_events
from .receipt_page import receipt_page
from .report import Erasure
from .run import COMPLETED, INCOMPLETE, REQUESTED, RESUMED

if TYPE_CHECKING:
    from ..log import AuditLog
    from ..store.snapshot import Snapshot

_HEADERS = "SELECT seq, header FROM audit_event WHERE seq IN ({}) ORDER BY seq"


def receipt_name(erasure: Erasure) -> str:
    """Return what a receipt is called, unless somebody calls it otherwise."""
    return f"mnemoscope-receipt-{erasure.request}.zip"


def write_receipt(
    path: Path, log: AuditLog, erasure: Erasure, *, identities: Sequence[str], tenant: str | None
) -> None:
    """
    Write the receipt of an erasure that is complete.

    Args:
        path: The zip file, readable for its owner only. One that is there is replaced.
        log: The audit trail.
        erasure: The last run of the request.
        identities: The ids that were erased, as they were given.
        tenant: The tenant whose they are.

    Raises:
        ValueError: It is not: something is left, or unknown.
        AuditError: The trail cannot be read.
        OSError: The file cannot be written.
    """
    # Whoever holds a receipt takes it for all of it.
    if not erasure.complete:
        raise ValueError("an erasure that is not complete has no receipt")
    with log.reading() as snapshot:
        evidence, events = evidence_of(snapshot, log), list(_events(snapshot, erasure.request))
        proofs = EventProofs(evidence, Notice())
        proven = [proofs.proven(each) for each in events]
    about = {"identities": list(identities), "tenant": tenant}
    document = _document(erasure, about, evidence, proven)
    with archive_at(path, log.now_us()) as archive:
        # An id may have a lone surrogate, and a receipt is due all the same.
        archive.add("RECEIPT.txt", receipt_page(document).encode("utf-8", "replace"))
        archive.add("events.jsonl", b"".join(event_line(each.document) for each in proven))
        archive.add("proofs.jsonl", b"".join(each.line() for each in proven))
        archive.add("checkpoint.note", evidence.checkpoint.encode())
        archive.add("verify.py", verify_alone())
        files = [each._asdict() for each in archive.written]
        text = json_page(document | {"generated_at": utc(log.now_us()), "files": files})
        # After all others, whose hashes it has, and before the note that signs it.
        archive.add("manifest.json", text)
        digest = sha256(text).hexdigest()
        note = evidence.sign(f"mnemoscope receipt {erasure.request}\nsha256 {digest}\n")
        archive.add("manifest.note", note.encode())


def _events(snapshot: Snapshot, request: str) -> Iterator[SealedEvent]:
    wanted = (REQUESTED, RESUMED, INCOMPLETE, COMPLETED)
    # Not in SQL: PostgreSQL and SQLite have different functions for JSON in bytes.
    found = (
        seq
        for seq, each in log_events(snapshot.connection, *wanted)
        if each["data"]["request"] == request
    )
    for seq, header in among(snapshot, _HEADERS, [*found]):
        yield SealedEvent(seq, blob(header))


def _document(
    erasure: Erasure, about: dict[str, Any], evidence: Evidence, proven: Sequence[ProvenEvent]
) -> dict[str, Any]:
    first, last = proven[0].document, proven[-1].document
    # The last event may be a run that came after the proof, and found nothing more.
    ends = [each.document["data"] for each in proven if "complete" in each.document["data"]]
    return {
        "spec_version": SPEC_VERSION,
        "kind": "receipt",
        "request_id": erasure.request,
        "generator": {"name": "mnemoscope", "version": version("mnemoscope")},
        "complete": True,
        "subject": about,
        "begun_at": first["recorded_at"],
        "ended_at": last["recorded_at"],
        "runs": sum(each.document["operation"] in {REQUESTED, RESUMED} for each in proven),
        "stores": [
            {
                "name": each.name,
                "title": each.title,
                "status": each.status,
                # Over all runs: the last one found nothing where the first had removed all.
                "removed": sum(_removed(end, each.name) for end in ends),
                "messages": each.messages,
            }
            for each in erasure.stores
        ],
        "pseudonyms": sum(end["pseudonyms"] or 0 for end in ends),
        "details": sum(end["details"] or 0 for end in ends),
        "searched": [*erasure.traces],
        "erasure": ends[-1],
        "counts": {"events": len(proven)},
        "loss": [],
        "log": {
            "origin": evidence.origin,
            "size": evidence.size,
            "root": base64.b64encode(evidence.root).decode(),
            "verifier_key": evidence.verifier_key,
        },
    }


def _removed(end: dict[str, Any], store: str) -> int:
    return int(end["stores"].get(store, {}).get("removed", 0))
