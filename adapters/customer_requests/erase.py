"""Erase a person from the stores and the audit trail of a scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...audit.database.errors import AuditError
from ...audit.erasure.report import Erasure
from ...audit.erasure.run import ErasureRun
from ...audit.store.whose import Person
from ...memory.scope import Mnemoscope
from .joined import JoinedData


def erase(
    scope: Mnemoscope,
    person: Person,
    tell: Callable[[str], None] = lambda _step: None,
    *,
    tenant: str | None = None,
) -> Erasure:
    """
    Erase a person; *tell* is called with the name of each step as it begins.

    Args:
        scope: Its stores and its trail.
        person: See `person_in_scope`.
        tell: See above.
        tenant: Of a person whom the trail does not know, if it is known otherwise.

    Raises:
        ConfigurationError: The scope has no audit trail.
        ScopeError: An id is empty or a wildcard.
        AuditError: There may be more of them than is known, so that nothing was erased; or the
            trail cannot be read or written: then the next run goes on from there.
    """
    if person.doubts:
        raise AuditError(f"nothing was erased, because {person.doubts[0]}")
    log = scope.audit
    first, *others = person.identities
    whose = first.tenant if person.is_logged else tenant
    further = {
        each: scope.customer_data(each.customer, tenant=each.tenant if person.is_logged else tenant)
        for each in others
    }
    with scope.customer_data(first.customer, tenant=whose) as data:
        joined = JoinedData(data, further)
        run = ErasureRun(
            log, joined, customer=first.customer, tenant=whose, others=others, tell=tell
        )
        return run.run()


def as_document(erasure: Erasure) -> dict[str, Any]:
    """Return *erasure* for ``--json``."""
    stores = [
        {"name": each.name, **each.counts(), "messages": each.messages} for each in erasure.stores
    ]
    return {
        **erasure.proof(),
        "resumed": erasure.resumed,
        "stores": stores,
        "unsettled": erasure.unsettled,
        "proof_seq": erasure.seq,
    }
