"""Tenants: whether a log knows one by that name, before it is said what was done for it."""

from __future__ import annotations

import re

from ...telemetry.event.spelling import usual_spellings
from ..database.errors import UnknownTenantError
from .snapshot import Snapshot

_HEADERS = "SELECT header FROM audit_event WHERE kind = 'operation' ORDER BY seq DESC"


def check_tenant(snapshot: Snapshot, tenant: str, *beside: Snapshot) -> None:
    """
    Check that an operation was recorded for *tenant*; if empty, for none, which is always so.

    Args:
        snapshot: The log.
        tenant: The tenant.
        beside: Further logs, as shards are.

    Raises:
        UnknownTenantError: None was.
        AuditError: The log cannot be read, or was written with other keys.
    """
    if not tenant:
        return
    others: set[str] = set()
    for each in (snapshot, *beside):
        found = _other_spellings(each, tenant)
        if found is None:
            return
        others |= found
    raise UnknownTenantError(others=tuple(sorted(others)))


def _other_spellings(snapshot: Snapshot, tenant: str) -> set[str] | None:
    """Return the spellings of *tenant* that are known in its place; None: it is known itself."""
    if not snapshot.size:
        return set()
    tenant_of = snapshot.references.tenant
    spellings = {tenant_of(each): each for each in usual_spellings(tenant)}
    wanted = re.compile(f'"tenant":"({"|".join(spellings)})"'.encode())
    others: set[str] = set()
    # No column tells tenants; the latest events most often have the one that is asked for.
    for (header,) in snapshot.stream(_HEADERS):
        found = wanted.search(bytes(header))
        if found is not None:
            others.add(spellings[found[1].decode()])
        if tenant in others:
            return None
    return others
