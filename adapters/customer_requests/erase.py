"""Erase a person from the stores and the audit trail of a scope."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

from ...audit.database.errors import AuditError
from ...audit.erasure.receipt import receipt_name, write_receipt
from ...audit.erasure.report import Erasure
from ...audit.erasure.run import ErasureRun
from ...audit.log import AuditLog
from ...audit.store.person_lookup import Person
from ...memory.scope import Mnemoscope
from .joined import JoinedData


def erase(
    scope: Mnemoscope,
    person: Person,
    tell: Callable[[str], None] = lambda _step: None,
    *,
    tenant: str | None = None,
    vouched: Collection[str] = (),
    including_shared: bool = False,
    leave: Callable[[Erasure], bool] = lambda _erasure: True,
    log: AuditLog | None = None,
) -> Erasure:
    """
    Erase a person; *tell* is called with the name of each step as it begins.

    Args:
        scope: Its stores and its trail.
        person: See `person_in_scope`.
        tell: See above.
        tenant: Of a person whom the trail does not know, if it is known otherwise.
        vouched: Stores that cannot be asked, and hold nothing of theirs, as the operator says.
        including_shared: Erase threads that another customer has written in, too, for both.
        leave: Called when nothing is left, to leave the receipt; returns whether it is out. Until
            then the request is found again by the person's ids: see `ErasureRun`.
        log: The one shard of the trail. None: all that has something of theirs, if it is one.

    Raises:
        ConfigurationError: The scope has no audit trail.
        ScopeError: An id is empty or a wildcard.
        ErasedMeanwhileError: Another run has erased them since they were looked up.
        AuditError: There may be more of them than is known, or stores hold what another tenant's
            customer of this id may have, so that nothing was erased; or the trail cannot be read or
            written: then the next run goes on from there.
    """
    # Here again, for programs: the command line is not the only caller.
    if person.doubts:
        raise AuditError(f"nothing was erased, because {person.doubts[0]}")
    if person.shared_with:
        raise AuditError(
            "nothing was erased, because another tenant has a customer of this id, and stores tell "
            "no tenants apart"
        )
    log = log or only_part(scope.audit, person, "erased")
    first, *others = person.identities
    # What stores alone know has no tenant of its own: it is that of the request.
    whose = first.tenant if person.is_logged else tenant
    further = {
        each: scope.customer_data(each.customer, tenant=each.tenant if person.is_logged else tenant)
        for each in others
    }
    with scope.customer_data(first.customer, tenant=whose) as data:
        run = ErasureRun(
            log,
            JoinedData(data, further),
            customer=first.customer,
            tenant=whose,
            others=others,
            uids=person.uids,
            vouched=vouched,
            including_shared=including_shared,
            tell=tell,
            leave=leave,
        )
        return run.run()


def only_part(trail: AuditLog, person: Person, done: str) -> AuditLog:
    """
    Return the log that has all of *person*: the trail, or one of its shards.

    Raises:
        AuditError: Several shards have something of theirs: nothing was *done*.
    """
    parts = trail.parts_of(person)
    if len(parts) > 1:
        raise AuditError(
            f"nothing was {done}: {len(parts)} shards of the audit trail have something of theirs, "
            "which mnemoscope audit export and audit erase go through one by one"
        )
    return parts[0][0]


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


def no_receipt_yet() -> Receipt:
    """Return the line in place of a receipt while an erasure is incomplete."""
    return Receipt(None, "No receipt yet: there is one when nothing is left.")


def leave_receipt(
    scope: Mnemoscope,
    erasure: Erasure,
    out: Path | None,
    *,
    person: Person,
    is_known: bool = True,
    log: AuditLog | None = None,
) -> Receipt:
    """
    Write the receipt of an erasure that is complete to *out*: a file or folder; None: this one.

    There is none of a *person* whom nobody knew.

    Raises:
        AuditError: The trail cannot be read.
    """
    if not erasure.complete:
        return no_receipt_yet()
    # A receipt to somebody whom nobody knows would prove what nobody can know.
    if not is_known:
        return Receipt(None, "No receipt: nobody of this name is known.")
    given = out or Path()
    path = given / receipt_name(erasure) if given.is_dir() else given
    # Several tenants may have the same id.
    ids = list(dict.fromkeys(each.customer for each in person.identities))
    tenant = " and ".join(filter(None, person.tenants)) or None
    try:
        log = log or only_part(scope.audit, person, "written")
        write_receipt(path, log, erasure, identities=ids, tenant=tenant)
    # What is erased is erased: the next run finds the request under way, and tries again.
    except OSError as exc:
        reason = (exc.strerror or type(exc).__name__).lower()
        line = f"The customer was erased, but no receipt could be written to {path}: {reason}."
        return Receipt(None, line, failed=True)
    return Receipt(str(path), f"Receipt: {path}. It is the customer's: it has their id.")


def erase_with_receipt(
    scope: Mnemoscope,
    person: Person,
    tell: Callable[[str], None],
    *,
    out: Path | None,
    is_known: bool = True,
    log: AuditLog | None = None,
    **how: Any,
) -> tuple[Erasure, Receipt]:
    """Erase a person and leave the receipt: see `erase`, which takes *how*, and `leave_receipt`."""
    left = [no_receipt_yet()]

    def leave(erasure: Erasure) -> bool:
        left.append(leave_receipt(scope, erasure, out, person=person, is_known=is_known, log=log))
        return not left[-1].failed

    erasure = erase(scope, person, tell, leave=leave, log=log, **how)
    return erasure, left[-1]


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
