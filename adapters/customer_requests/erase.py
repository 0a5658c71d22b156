"""Erase a customer from the stores and the audit trail of a scope."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...audit.erasure.receipt import receipt_name, write_receipt
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


class Receipt(NamedTuple):
    """
    The outcome of leaving a receipt.

    Attributes:
        path: The file, if there is one.
        line: What to say of it.
        failed: Whether there should be one.
    """

    path: str | None
    line: str
    failed: bool = False


def leave_receipt(
    scope: Mnemoscope,
    erasure: Erasure,
    out: Path | None,
    *,
    identities: Sequence[str],
    tenant: str | None,
) -> Receipt:
    """
    Write the receipt of an erasure that is complete to *out*: a file or folder; None: this one.

    Raises:
        AuditError: The trail cannot be read.
    """
    if not erasure.complete:
        return Receipt(None, "No receipt yet: there is one when nothing is left.")
    given = out or Path()
    path = given / receipt_name(erasure) if given.is_dir() else given
    try:
        write_receipt(path, scope.audit, erasure, identities=identities, tenant=tenant)
    except OSError as exc:
        reason = (exc.strerror or type(exc).__name__).lower()
        line = f"The customer was erased, but no receipt could be written to {path}: {reason}."
        return Receipt(None, line, failed=True)
    return Receipt(str(path), f"Receipt: {path}. It is the customer's: it has their id.")


def as_document(erasure: Erasure) -> dict[str, Any]:
    """Return *erasure* for ``--json``."""
    stores = [
        {"name": each.name, **each.counts(), "messages": each.messages} for each in erasure.stores
    ]
    return {
        **erasure.proof(),
        "resumed": erasure.resumed,
        "stores": stores,
        "places": [
            {"name": each.name, "status": each.status, "messages": each.messages}
            for each in erasure.places
        ],
        "unsettled": erasure.unsettled,
        "proof_seq": erasure.seq,
    }
