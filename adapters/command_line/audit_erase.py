# ruff: noqa: FBT002 - typer reads options off a function's parameters
"""``mnemoscope audit erase``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from .outcome import INCOMPLETE, USAGE, CommandError, say


def audit_erase(
    customer: Annotated[str, typer.Option(metavar="ID", help="Whom to forget.")],
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of which tenant, where there are several.")
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            envvar="MNEMOSCOPE_SCOPE",
            help="Your Mnemoscope, or a function that returns one: it knows the stores.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """
    Forget a customer in every store, shred what the audit trail has of them, and prove it.

    Exits with 0 if nothing is left as far as can be known, else with 3: the stores that failed are
    named, and running it again goes on. It cannot be undone.
    """
    if scope is None:
        raise CommandError(
            "erase needs the stores: pass --scope package.module:name, your Mnemoscope or a "
            "function that returns one. Nothing was changed.",
            USAGE,
        )
    from .erasure import erased, show  # noqa: PLC0415 - loads every store

    if not yes and not _confirmed():
        say("nothing was changed")
        raise typer.Exit(INCOMPLETE)
    with Console(stderr=True).status("opening the scope") as status:
        erasure = erased(scope, customer, tenant, status.update)
    show(erasure, Console(), json=json)
    raise typer.Exit(0 if erasure.complete else INCOMPLETE)


def _confirmed() -> bool:
    if not sys.stdin.isatty():
        raise CommandError("nobody is there to confirm it: pass --yes. Nothing was changed.", USAGE)
    return typer.confirm("Forget this customer in every store? It cannot be undone.", err=True)
