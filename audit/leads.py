"""
What the trail knows of a customer that their stores do not tell: threads, and deleted memories.

A thread's id names nobody, and neither does the history that a store keeps of a memory that is
gone. The trail has them in that customer's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..telemetry.event import OperationClass
from .sentinels import Sentinels

if TYPE_CHECKING:
    from .log import AuditLog

_OURS = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT, OperationClass.FORGET})
"""Reads are not: what was found for a customer may be a document, or somebody else's."""

_OWN_ID = re.compile(r"<SUBJECT_ID(?:_[0-9a-f]+)?>")
"""What redaction writes in place of an id that the application itself gave."""


class Leads(NamedTuple):
    """
    What the trail knows to be a customer's.

    Attributes:
        runs: Runs in which something of theirs was written.
        memory_ids: Ids that were written or deleted in their name, by store. Of a checkpointer:
            its checkpoints'.
    """

    runs: frozenset[str]
    memory_ids: Mapping[str, frozenset[str]]


def leads(
    log: AuditLog, customer: str, tenant: str | None, sentinels: Sentinels | None = None
) -> Leads:
    """
    Return what *log* knows to be a customer's; words of it are offered to *sentinels*.

    Raises:
        AuditError: It cannot be read, or was written with other keys.
    """
    runs: set[str] = set()
    memory_ids: dict[str, set[str]] = {}
    for row in log.history(customer, tenant):
        if row.op_class not in _OURS:
            continue
        if row.run and row.op_class is OperationClass.CHECKPOINT:
            runs |= {row.run, verbatim(row.run, customer)}
        memory_ids.setdefault(row.store, set()).update(each.memory_id for each in row.memories)
        if sentinels and row.content and row.op_class is OperationClass.REMEMBER:
            sentinels.offer(json.loads(row.content))
    return Leads(frozenset(runs), {store: frozenset(ids) for store, ids in memory_ids.items()})


def verbatim(run: str, customer: str) -> str:
    """Return a run's name with the customer's id where it was replaced: as the stores know it."""
    return _OWN_ID.sub(lambda _match: customer, run)
