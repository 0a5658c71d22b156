"""The recipients of one customer's data, without the bundle that says so to the customer."""

from __future__ import annotations

from typing import Any

from ..log import AuditLog
from ..store.person_lookup import Person
from .event_proofs import EventProofs
from .notice import Notice
from .source import source
from .summary import EventSummary


def recipients_of(log: AuditLog, person: Person) -> dict[str, Any]:
    """
    Return who received data about *person*, when, and what of it: ``recipients.json`` of a bundle.

    Raises:
        AuditError: The log cannot be read, or was written with other keys.
        SubjectConflictError: An id names two customers of one tenant.
    """
    summary = EventSummary()
    with source(log, person) as found:
        proofs = EventProofs(found.evidence, Notice())
        for sealed in found.history:
            proven = proofs.proven(sealed)
            summary.add(proven.document, proven.receipts)
    return summary.recipients()
