"""``mnemoscope audit erase``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ...customer_requests.who import shared_line
from ..exit_codes import INCOMPLETE, NOBODY_KNOWN, SEVERAL_PEOPLE, USAGE, CommandError, say
from ..options import (
    AuditUrl,
    Json,
    ScopeAddress,
    Tenant,
    Yes,
    check_can_ask,
    confirm,
    needed_scope,
)
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
    from ....audit.erasure.report import Erasure
    from ....audit.store.person_lookup import CustomerQuery, Person
    from ....memory.scope import Mnemoscope
    from ...customer_requests.erase import Receipt


def erase(
    customer: Annotated[str, typer.Option(metavar="ID", help="The customer to erase.")],
    tenant: Tenant = None,
    also: Also = None,
    any_of_them: AnyOfThem = False,
    exact: Exact = False,
    own_stores: OwnStores = False,
    including_shared: IncludingShared = False,
    even_if_unknown: Annotated[
        bool,
        typer.Option("--even-if-unknown", help="Sweep the stores for an id that nobody knows."),
    ] = False,
    scope: ScopeAddress = None,
    audit_url: AuditUrl = None,
    vouch: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A store, vault or files that cannot tell: you looked, and nothing is theirs.",
        ),
    ] = None,
    receipt: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="File or folder for the receipt. Default: this folder."),
    ] = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """
    Erase a customer from every store and the audit trail, and record a proof.

    Exits with 0 if nothing of the customer is left, else with 3: it names what failed, still has
    something, or could not be asked, and running it again resumes. Nothing is done, and it exits
    with 5 if several people have that id, 6 if nobody is known by it. It cannot be undone.
    """
    address = needed_scope(scope, "erase")
    query = query_of(
        customer,
        tenant,
        also=also,
        any_of_them=any_of_them,
        exact=exact,
        own_stores=own_stores,
    )
    check_can_ask(yes=yes)
    _check_folder(receipt)
    from ....audit.database.errors import AuditError
    from ...customer_requests.erase import erase_with_receipt
    from ..scope import scope_with_trail

    status = Console(stderr=True).status("opening the scope")
    with status, scope_with_trail(address, audit_url) as opened:
        person, is_known = _person(opened, query, even_if_unknown=even_if_unknown)
        _tell(query, person, is_known=is_known)
        # The terminal is asked a question, over which a spinner would be drawn.
        status.stop()
        confirm("Erase this customer from every store? It cannot be undone.", yes=yes)
        status.start()
        found = opened.audit.parts_of(person)
        # What names nobody goes with the others' part.
        parts = [each for each in found if each[1].is_logged] or found
        if len(parts) > 1 and receipt is not None and not receipt.is_dir():
            raise CommandError(
                f"{len(parts)} shards of the trail have something of theirs, with a receipt each: "
                "name a folder with --receipt. Nothing was changed.",
                USAGE,
            )
        done: list[tuple[Erasure, Receipt]] = []
        for shard, known in parts:
            try:
                done.append(
                    erase_with_receipt(
                        opened,
                        known,
                        status.update,
                        out=receipt,
                        is_known=is_known,
                        tenant=tenant,
                        vouched=vouch or (),
                        including_shared=including_shared,
                        log=shard,
                    )
                )
            except AuditError as exc:
                if len(parts) == 1:
                    raise
                already = f"{len(done)} of {len(parts)} shards are done: run this again"
                raise CommandError(f"{exc}. {already}", INCOMPLETE) from exc
    if json:
        _print_json(done, query, person, is_known=is_known)
    for erasure, left in done:
        if not json:
            _show(erasure, is_known=is_known)
        say(left.line)
    raise typer.Exit(max(_code(*each, is_known=is_known) for each in done))


def _check_folder(receipt: Path | None) -> None:
    """Refuse a place for the receipt that cannot be written, before anything is erased."""
    given = receipt or Path()
    folder = given if given.is_dir() else given.parent
    if not os.access(folder, os.W_OK):
        raise CommandError(
            f"no receipt can be written to {folder}: name another place with --receipt. Nothing "
            "was changed.",
            USAGE,
        )


def _person(
    scope: Mnemoscope, query: CustomerQuery, *, even_if_unknown: bool
) -> tuple[Person, bool]:
    """Return who is to be erased, and whether anybody knows them."""
    from ....audit.database.errors import UnknownSubjectError
    from ...customer_requests.requested_person import person_in_scope, unknown_person

    try:
        return person_in_scope(scope, query), True
    except UnknownSubjectError:
        if not even_if_unknown:
            raise
        return unknown_person(query), False


def _tell(query: CustomerQuery, person: Person, *, is_known: bool) -> None:
    if is_known:
        say_who(query, person)
    # Half a person erased cannot be told from a whole one afterwards, by anybody.
    if person.doubts:
        raise CommandError(
            "cannot tell whether that is all of them. Pass --exact if the ids that were given are "
            "all that they have. Nothing was changed.",
            INCOMPLETE,
        )
    if person.shared_with:
        raise CommandError(f"{shared_line(person)}. Nothing was changed.", SEVERAL_PEOPLE)


def _print_json(
    done: list[tuple[Erasure, Receipt]], query: CustomerQuery, person: Person, *, is_known: bool
) -> None:
    from ...customer_requests.erase import as_document

    documents = [{**as_document(erasure), "receipt": left.path} for erasure, left in done]
    document: dict[str, Any] = documents[0] if len(done) == 1 else {"shards": documents}
    document["complete"] = all(erasure.complete for erasure, _left in done) and is_known
    document["person"] = {"known": is_known, **person_document(query, person)}
    print_json(document)


def _show(erasure: Erasure, *, is_known: bool) -> None:
    from ...customer_requests.erasure_screen import erasure_screen

    Console().print(erasure_screen(erasure, is_known=is_known))


def _code(erasure: Erasure, left: Receipt, *, is_known: bool) -> int:
    if not erasure.complete or left.failed:
        return INCOMPLETE
    return 0 if is_known else NOBODY_KNOWN
