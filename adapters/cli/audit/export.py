"""``mnemoscope audit export``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ....audit.bundle.contract import RequestType
from ...customer_requests.who import shared_line
from ..exit_codes import INCOMPLETE, say
from ..options import AuditUrl, Json, ScopeAddress, Tenant
from ..person_options import (
    Also,
    AnyOfThem,
    Exact,
    IncludingShared,
    OwnStores,
    query_of,
    say_who,
)
from ..person_options import as_document as person_document

if TYPE_CHECKING:
    from ....audit.bundle.writing import Bundle
    from ....audit.log import AuditLog
    from ....audit.store.person_lookup import CustomerQuery, Person
    from ....memory.scope import Mnemoscope


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
    from ...customer_requests.export import (
        bundle_document,
        bundle_lines,
        bundle_path,
        new_request,
        read_notice,
    )
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
        notice=read_notice(notice),
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
        document = bundle_document(bundle, from_log_alone=scope is None)
        Console().print_json(data={**document, "person": person_document(query, person)})
    else:
        for line in bundle_lines(bundle, from_log_alone=scope is None):
            say(line)
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
