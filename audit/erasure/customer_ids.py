"""
The ids that only the audit trail has of a customer: their threads, and their deleted memories.

A thread's id names nobody, and neither does the history that a store keeps of a memory that is
gone. The trail has them in that customer's name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...memory.subject_data.records import DataSubject
from ...telemetry.event.event import OperationClass
from ...telemetry.event.spelling import Identity
from ..queries import reading
from ..queries.provenance import verbatim
from .residue_scan import ResidueTexts

if TYPE_CHECKING:
    from ..log import AuditLog
    from ..record.rows import AuditRow

_OURS = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT, OperationClass.FORGET})
"""Reads are not: what was found for a customer may be a document, or somebody else's."""


def data_subject(
    log: AuditLog,
    customer: str,
    tenant: str | None,
    residue: ResidueTexts | None = None,
    *,
    others: Sequence[Identity] = (),
) -> DataSubject:
    """
    Return a customer with the ids that *log* knows to be theirs; offer its texts to *residue*.

    They need not be known to it. What it has of *others*, further ids of theirs, is theirs too.

    Raises:
        AuditError: It cannot be read, or was written with other keys.
        ScopeError: The customer is nobody or everybody.
    """
    runs: set[str] = set()
    stores: set[str] = set()
    memory_ids: dict[str, set[str]] = {}
    identities = (Identity(customer, tenant or ""), *others)
    for row in _rows(log, identities):
        if row.op_class not in _OURS:
            continue
        if row.op_class is not OperationClass.FORGET:
            stores.add(row.store)
        if row.run and row.op_class is OperationClass.CHECKPOINT:
            runs |= {row.run, *(verbatim(row.run, each.customer) for each in identities)}
        memory_ids.setdefault(row.store, set()).update(each.memory_id for each in row.memories)
        if residue and row.content and row.op_class is OperationClass.REMEMBER:
            residue.offer(json.loads(row.content))
    return DataSubject(
        customer=customer,
        tenant=tenant,
        runs=runs,
        memory_ids=memory_ids,
        stores=stores,
        shorter_ids=_shorter_ids(log, customer, tenant),
    )


def _shorter_ids(log: AuditLog, customer: str, tenant: str | None) -> set[str]:
    parts = customer.split(".")
    shorter = {".".join(parts[:count]) for count in range(1, len(parts))} - {""}
    with log.reading() as snapshot:
        return {each for each in shorter if snapshot.uids(each, tenant or "")}


def _rows(log: AuditLog, identities: Sequence[Identity]) -> Iterator[AuditRow]:
    with log.reading() as snapshot:
        snapshot.check_keys()
        tenants = tuple(dict.fromkeys(each.tenant for each in identities))
        yield from reading.history_of(snapshot, snapshot.uids_of(identities), tenants)
