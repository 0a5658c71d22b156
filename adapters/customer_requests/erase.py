"""Erase a customer from the stores and the audit trail of a scope."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ...audit.erasure.report import Erasure
from ...audit.erasure.run import ErasureRun
from ...memory.scope import Mnemoscope


def erase(
    scope: Mnemoscope,
    customer: str,
    tenant: str | None,
    tell: Callable[[str], None] = lambda _step: None,
    *,
    vouched: Collection[str] = (),
) -> Erasure:
    """
    Erase a customer; *tell* is called with the name of each step as it begins.

    Stores that are *vouched* for cannot be asked, and hold nothing of theirs, as the operator says.

    Raises:
        ConfigurationError: The scope has no audit trail.
        ScopeError: The customer's id is empty or a wildcard.
        AuditError: The trail cannot be read or written. The next run goes on from there.
    """
    with scope.customer_data(customer, tenant=tenant) as data:
        return ErasureRun(
            scope.audit, data, customer=customer, tenant=tenant, vouched=vouched, tell=tell
        ).run()


def as_document(erasure: Erasure) -> dict[str, Any]:
    """Return *erasure* for ``--json``."""
    stores = [
        {"name": each.name, **each.counts(), "messages": each.messages} for each in erasure.stores
    ]
    return {
        **erasure.proof(),
        "ended": erasure.ended,
        "resumed": erasure.resumed,
        "stores": stores,
        "places": [
            {"name": each.name, "status": each.status, "messages": each.messages}
            for each in erasure.places
        ],
        "unsettled": erasure.unsettled,
        "proof_seq": erasure.seq,
    }
