"""``mnemoscope audit export``."""

from __future__ import annotations

import json as json_format
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ....audit.bundle.contract import RequestType
from ...customer_requests.who import shared_line
from ..exit_codes import INCOMPLETE, say
from ..options import AuditUrl, Json, ScopeAddress, Tenant
from ..output import print_json
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
        person, bundles = _from_log(open_trail(audit_url), query, how)
    else:
        with scope_with_trail(scope, audit_url) as opened:
            how["including_shared"] = including_shared
            person, bundles = _from_scope(opened, query, how)
    documents = [bundle_document(each, from_log_alone=scope is None) for each in bundles]
    is_complete = all(each.complete for each in bundles)
    if json:
        document = documents[0] if len(bundles) == 1 else _joined(documents)
        print_json({**document, "person": person_document(query, person)})
    else:
        for line in (
            each for its in bundles for each in bundle_lines(its, from_log_alone=scope is None)
        ):
            say(line)
    if len(bundles) > 1:
        listed = how["path"].with_suffix("") / "manifest.json"
        listed.write_text(json_format.dumps(_joined(documents), indent=1), encoding="utf-8")
        say(
            f"{len(bundles)} shards of the trail have something of theirs, with a bundle each: "
            f"{listed} lists them"
        )
    raise typer.Exit(0 if is_complete else INCOMPLETE)


def _joined(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what is in the bundles of several shards; each can be verified alone."""
    return {"complete": all(each["complete"] for each in documents), "bundles": documents}


def _in_parts(log: AuditLog, person: Person, how: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield how each part of the person is exported: in a folder, where there are several."""
    parts = log.parts_of(person)
    for number, (shard, known) in enumerate(parts, 1):
        path: Path = how["path"]
        if len(parts) > 1:
            folder = path.with_suffix("")
            folder.mkdir(mode=0o700, exist_ok=True)
            path = folder / f"part-{number}.zip"
        yield {**how, "log": shard, "person": known, "path": path}


def _from_log(
    log: AuditLog, query: CustomerQuery, how: dict[str, Any]
) -> tuple[Person, list[Bundle]]:
    from ...customer_requests.export import export_from_log
    from ...customer_requests.requested_person import person_in_log

    person = person_in_log(log, query)
    say_who(query, person)
    return person, [export_from_log(**each) for each in _in_parts(log, person, how)]


def _from_scope(
    scope: Mnemoscope, query: CustomerQuery, how: dict[str, Any]
) -> tuple[Person, list[Bundle]]:
    from ...customer_requests.export import export_from_scope
    from ...customer_requests.requested_person import person_in_scope

    person = person_in_scope(scope, query)
    say_who(query, person)
    if person.shared_with:
        say(shared_line(person))
    parts = _in_parts(scope.audit, person, how)
    return person, [export_from_scope(scope, **each) for each in parts]
