"""``mnemoscope audit erase``."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..exit_codes import INCOMPLETE, USAGE, CommandError, say
from ..options import Json, ScopeAddress, Tenant


def erase(
    customer: Annotated[str, typer.Option(metavar="ID", help="The customer to erase.")],
    tenant: Tenant = None,
    scope: ScopeAddress = None,
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
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    json: Json = False,
) -> None:
    """
    Erase a customer from every store and from the audit trail, and record a proof.

    Exits with 0 if nothing of the customer is left, else with 3: it names what failed, still has
    something, or could not be asked, and running it again resumes. It cannot be undone.
    """
    if scope is None:
        raise CommandError(
            "erase needs the stores: pass --scope package.module:name, your Mnemoscope or a "
            "function that returns one. Nothing was changed.",
            USAGE,
        )
    from ...customer_requests.erase import as_document, leave_receipt
    from ...customer_requests.erase import erase as erase_customer
    from ...customer_requests.erasure_screen import erasure_screen
    from ..scope import scope_at

    _check_folder(receipt)
    if not (yes or _is_confirmed()):
        say("nothing was changed")
        raise typer.Exit(INCOMPLETE)
    with Console(stderr=True).status("opening the scope") as status, closing(scope_at(scope)) as it:
        erasure = erase_customer(it, customer, tenant, status.update, vouched=vouch or ())
        left = leave_receipt(it, erasure, receipt, identities=[customer], tenant=tenant)
    if json:
        Console().print_json(data=as_document(erasure) | {"receipt": left.path})
    else:
        Console().print(erasure_screen(erasure))
    say(left.line)
    raise typer.Exit(0 if erasure.complete and not left.failed else INCOMPLETE)


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


def _is_confirmed() -> bool:
    if not sys.stdin.isatty():
        raise CommandError("there is no terminal to ask: pass --yes. Nothing was changed.", USAGE)
    return typer.confirm("Erase this customer from every store? It cannot be undone.", err=True)
