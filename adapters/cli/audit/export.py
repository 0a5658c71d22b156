"""``mnemoscope audit export``."""

from __future__ import annotations

import json as json_format
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ....audit.bundle.contract import RequestType, StoreStatus
from ....audit.bundle.notice import Notice, parse_notice
from ..exit_codes import INCOMPLETE, USAGE, CommandError, say
from ..options import AuditUrl, Json, ScopeAddress, Tenant
from ..person_options import (
    Also,
    AnyOfThem,
    Exact,
    IncludingShared,
    OwnStores,
    query_of,
    say_who,
    shared_line,
)
from ..person_options import as_document as person_document

if TYPE_CHECKING:
    from ....audit.bundle.writing import Bundle
    from ....audit.log import AuditLog
    from ....audit.store.person_lookup import CustomerQuery, Person
    from ....memory.scope import Mnemoscope

_STATUSES = {
    StoreStatus.PARTIAL: "answered in part, then failed",
    StoreStatus.FAILED: "failed",
    StoreStatus.NOT_ASKED: "not asked",
}


def export(
    customer: Annotated[str, typer.Option(metavar="ID", help="The customer to export.")],
    tenant: Tenant = None,
    also: Also = None,
    any_of_them: AnyOfThem = False,
    exact: Exact = False,
    own_stores: OwnStores = False,
    including_shared: IncludingShared = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Write to this file or folder. Default: this folder."),
    ] = None,
    portability: Annotated[
        bool,
        typer.Option("--portability", help="Only what can be taken elsewhere (GDPR Art. 20)."),
    ] = False,
    scope: ScopeAddress = None,
    notice: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="MNEMOSCOPE_NOTICE",
            help="JSON with controller, art15 and subject: what only you know.",
        ),
    ] = None,
    audit_url: AuditUrl = None,
    json: Json = False,
) -> None:
    """
    Write everything held about a customer, with proofs, to a zip file.

    It is for them to read and check. Exits with 0 if the answer is complete; with 3 if a store did
    not answer in full or was not asked, or if --notice does not state what only the controller
    knows. Nothing is written, and it exits with 5 if several people have that id, 6 if nobody is
    known by it. Without --scope the stores are not asked: the export is from the log alone.
    """
    from ...customer_requests.export import bundle_path, new_request
    from ..progress import progress_bar
    from ..scope import open_trail, scope_with_trail

    query = query_of(
        customer,
        tenant,
        also=also,
        any_of_them=any_of_them,
        exact=exact,
        own_stores=own_stores,
    )
    request = new_request(
        RequestType.PORTABILITY if portability else RequestType.ACCESS,
        notice=_notice(notice),
    )
    how: dict[str, Any] = {
        "request": request,
        "path": bundle_path(out, request),
        "progress": partial(progress_bar, Console(stderr=True), "exporting"),
        "tell": say,
    }
    if scope is None:
        person, bundle = _from_log(open_trail(audit_url), query, how)
    else:
        with scope_with_trail(scope, audit_url) as opened:
            how["including_shared"] = including_shared
            person, bundle = _from_scope(opened, query, how)
    if json:
        document = _as_document(bundle, from_log_alone=scope is None)
        Console().print_json(data={**document, "person": person_document(query, person)})
    else:
        _show(bundle, from_log_alone=scope is None)
    raise typer.Exit(0 if bundle.complete else INCOMPLETE)


def _from_log(log: AuditLog, query: CustomerQuery, how: dict[str, Any]) -> tuple[Person, Bundle]:
    from ...customer_requests.export import export_from_log
    from ...customer_requests.requested_person import person_in_log

    person = person_in_log(log, query)
    say_who(query, person)
    return person, export_from_log(log, person, **how)


def _from_scope(
    scope: Mnemoscope, query: CustomerQuery, how: dict[str, Any]
) -> tuple[Person, Bundle]:
    from ...customer_requests.export import export_from_scope
    from ...customer_requests.requested_person import person_in_scope

    person = person_in_scope(scope, query)
    say_who(query, person)
    if person.shared_with:
        say(shared_line(person))
    return person, export_from_scope(scope, person, **how)


def _notice(path: Path | None) -> Notice:
    if path is None:
        return Notice()
    try:
        found: Any = json_format.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise CommandError(f"{path} is not JSON", USAGE) from None
    try:
        return parse_notice(found)
    except ValueError as exc:
        raise CommandError(f"{path}: {exc}", USAGE) from None


def _show(bundle: Bundle, *, from_log_alone: bool) -> None:
    from ...customer_requests.export import TRAIL

    if bundle.holds_nothing:
        say(f"this customer is known, and no data is held about them now: {bundle.path} says so")
    else:
        counts = bundle.counts
        say(
            f"{bundle.path}: {counts.memories:,} remembered now, {counts.accesses:,} times looked "
            f"up, {counts.events:,} events"
        )
        if counts.beside:
            say(f"and {counts.beside:,} records of earlier versions or messages")
    if from_log_alone:
        say("from the audit log alone: the stores were not asked; pass --scope to ask them")
    for each in bundle.stores:
        if each.status in _STATUSES and each.name != TRAIL:  # its doubts were told
            error = f" ({each.error})" if each.error else ""
            status = "answered" if each.n_shared else _STATUSES[each.status]
            say(f"{each.name}: {status}{error}")
            if each.n_shared:
                say("--including-shared exports their content, with what the other has written")
    if bundle.losses:
        say(f"the log declares {bundle.losses:,} events of any customer as lost")
    if bundle.not_stated:
        say(f"not stated, for want of --notice: {', '.join(bundle.not_stated)}")
    if not bundle.complete:
        say("incomplete: the bundle says so on its first page and in its manifest")


def _as_document(bundle: Bundle, *, from_log_alone: bool) -> dict[str, Any]:
    return {
        "path": str(bundle.path),
        "events": bundle.events,
        "accesses": bundle.counts.accesses,
        "memories": bundle.memories,
        "beside": bundle.counts.beside,
        "complete": bundle.complete,
        "not_stated": list(bundle.not_stated),
        "from_log_alone": from_log_alone,
        "loss": bundle.losses,
        "stores": [
            {
                "name": each.name,
                "status": each.status.value,
                "n_memories": each.n_memories,
                "error": each.error,
            }
            for each in bundle.stores
        ],
    }
