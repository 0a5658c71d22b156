"""
The ids that only the audit trail has of a customer: their threads, and their deleted memories.

A thread's id names nobody, and neither does the history that a store keeps of a memory that is
gone. The trail has them in that customer's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ...memory.subject_data.records import DataSubject
from ...telemetry.event.event import OperationClass
from ...telemetry.event.spelling import Identity
from ...telemetry.text import recorded_name
from ..queries import reading
from ..queries.provenance import verbatim
from ..record.subjects import NOBODY
from .residue_scan import ResidueTexts

if TYPE_CHECKING:
    from ..log import AuditLog
    from ..record.rows import AuditRow
    from ..store.snapshot import Snapshot

_OURS = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT, OperationClass.FORGET})
"""Reads are not: what was found for a customer may be a document, or somebody else's."""


def data_subject(
    log: AuditLog,
    customer: str,
    tenant: str | None,
    residue: ResidueTexts | None = None,
    *,
    others: Sequence[Identity] = (),
    including_shared: bool = False,
) -> DataSubject:
    """
    Return a customer with the ids that *log* knows to be theirs; offer its texts to *residue*.

    They need not be known to it. What it has of *others*, further ids of theirs, is theirs too.
    With *including_shared*, so is what is another customer's as well.

    Raises:
        AuditError: It cannot be read, or was written with other keys.
        ScopeError: The customer is nobody or everybody.
    """
    runs: dict[str, str] = {}
    stores: set[str] = set()
    memory_ids: dict[str, set[str]] = {}
    identities = (Identity(customer, tenant or ""), *others)
    for row in _rows(log, identities):
        if row.op_class not in _OURS:
            continue
        # Of a store with deletions alone nothing is left to look for.
        if row.op_class is not OperationClass.FORGET:
            stores.add(row.store)
        if row.run and row.op_class is OperationClass.CHECKPOINT:
            runs |= dict.fromkeys(
                (verbatim(row.run, each.customer) for each in identities), row.run
            )
            # The redacted form as well: the store has whichever the adapter passed on.
            runs[row.run] = row.run
        memory_ids.setdefault(row.store, set()).update(each.memory_id for each in row.memories)
        if residue and row.content and row.op_class is OperationClass.REMEMBER:
            residue.offer(json.loads(row.content))
    return DataSubject(
        customer=customer,
        tenant=tenant,
        runs=set(runs),
        memory_ids=memory_ids,
        stores=stores,
        run_names=runs,
        is_shared=_SavedRuns(log, identities).is_shared,
        including_shared=including_shared,
        shorter_ids=_shorter_ids(log, customer, tenant),
    )


class _SavedRuns:
    """The runs that a customer has saved checkpoints in, and perhaps others have as well."""

    def __init__(self, log: AuditLog, identities: Sequence[Identity]) -> None:
        self._log, self._identities = log, identities

    @cached_property
    def _own(self) -> frozenset[str]:
        """The subjects that the customer is, and those that are nobody."""
        found: set[str] = set()
        with self._log.moments() as snapshots:
            for snapshot in snapshots:
                found.update(snapshot.family(snapshot.uids_of(self._identities)))
                # A checkpoint that was saved in no customer's name is no other customer's.
                found.update(uid for (uid,) in snapshot.execute(_NOBODIES, (NOBODY,)).fetchall())
        return frozenset(found)

    def is_shared(self, run: str, owners: Mapping[str, str | None]) -> bool:
        """See `DataSubject.is_shared`."""
        own, names = self._own, {each.customer for each in self._identities}
        with self._log.moments() as snapshots:
            # The run as a whole first: one look-up in place of one for each checkpoint.
            refs = [each.references.run(recorded_name(run)) for each in snapshots]
            if not _saved_by(snapshots, "d.run_ref = ?", refs) <= own:
                return True
            for memory_id, owner in owners.items():
                name = recorded_name(memory_id)
                refs = [each.references.memory(name) for each in snapshots]
                known = _saved_by(snapshots, _OF_MEMORY, refs)
                # An owner that redaction has replaced may be anybody, this customer included.
                is_named = owner is not None and not _REDACTED.fullmatch(owner)
                if not known <= own or (not known and is_named and owner not in names):
                    return True
        return False


_REDACTED = re.compile(r"<[A-Z][A-Z_]*(_[0-9a-f]+)?>")
"""What redaction leaves of an id, which tells nothing of whose it was."""

_OF_MEMORY = "d.seq IN (SELECT seq FROM audit_memory WHERE memory_ref = ?)"
_NOBODIES = "SELECT subject_uid FROM audit_subject_alias WHERE id_type = ?"
_SAVED_BY = (
    "SELECT DISTINCT d.subject_uid FROM audit_detail d JOIN audit_event e ON e.seq = d.seq "
    "WHERE e.op_class = ? AND "
)


def _saved_by(snapshots: Sequence[Snapshot], where: str, refs: Sequence[bytes]) -> set[str]:
    """Return the subjects that saved checkpoints *where* each log has its one of *refs*."""
    found = set[str]()
    for each, ref in zip(snapshots, refs, strict=True):
        values = OperationClass.CHECKPOINT.value, ref
        found |= {uid for (uid,) in each.execute(_SAVED_BY + where, values).fetchall()}
    return found


def _shorter_ids(log: AuditLog, customer: str, tenant: str | None) -> set[str]:
    parts = customer.split(".")
    # A store may keep a namespace as text with dots: one id can be the beginning of another.
    shorter = {".".join(parts[:count]) for count in range(1, len(parts))} - {""}
    with log.moments() as snapshots:
        return {name for name in shorter for each in snapshots if each.uids(name, tenant or "")}


def _rows(log: AuditLog, identities: Sequence[Identity]) -> Iterator[AuditRow]:
    tenants = tuple(dict.fromkeys(each.tenant for each in identities))
    with log.moments() as snapshots:
        for each in snapshots:
            # With other keys nobody would be found, and nobody be erased without a word.
            each.check_keys()
            yield from reading.history_of(each, each.uids_of(identities), tenants)
