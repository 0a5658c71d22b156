"""Options that several commands share."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated

import typer

from .exit_codes import INCOMPLETE, USAGE, CommandError, say

chosen_shard: ContextVar[int | None] = ContextVar("chosen_shard", default=None)
"""The one shard of the audit trail that a command is asked of; None: all of them."""

Tenant = Annotated[
    str | None, typer.Option(metavar="NAME", help="The tenant, where there are several.")
]
ScopeAddress = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:NAME",
        envvar="MNEMOSCOPE_SCOPE",
        help="Your Mnemoscope, or a function that returns one.",
    ),
]
AuditUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The audit trail. Default: MNEMOSCOPE_AUDIT_URL."),
]
Roots = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="MNEMOSCOPE_TIMESTAMP_ROOTS",
        help="Certificates that time stamps are believed by, PEM.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Where to write them.")]
Kubernetes = Annotated[
    bool, typer.Option("--kubernetes", help="As objects of Kubernetes, for kubectl apply.")
]
Runbooks = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where your people read the runbooks, for the links to them. Default: the file that "
        "`install` writes beside the rest.",
    ),
]
Limit = Annotated[int, typer.Option(metavar="N", min=1, max=1_000_000_000, help="Show N at most.")]
MostRecalls = Annotated[
    int, typer.Option(metavar="N", min=1, max=1_000_000, help="The latest N recalls at most.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
TIMES = (
    "90s, 30m, 24h or 7d ago, a day, today, yesterday, or an ISO 8601 time (UTC, or its own zone)."
)
"""The help of an option that takes a time."""
Since = Annotated[str, typer.Option(metavar="AGE|TIME", help=TIMES)]


def needed_scope(scope: str | None, command: str) -> str:
    """
    Return the address of a scope.

    Raises:
        CommandError: There is none, which *command* does nothing without.
    """
    if scope is None:
        raise CommandError(
            f"{command} needs the stores: pass --scope package.module:name, your Mnemoscope or a "
            "function that returns one. Nothing was changed.",
            USAGE,
        )
    return scope


def check_can_ask(*, yes: bool) -> None:
    """
    Refuse to begin where somebody has to confirm and nobody can.

    Raises:
        CommandError: There is no terminal, and no ``--yes``.
    """
    if not (yes or sys.stdin.isatty()):
        raise CommandError("there is no terminal to ask: pass --yes. Nothing was changed.", USAGE)


def confirm(question: str, *, yes: bool) -> None:
    """
    Ask *question* on the terminal, unless it was confirmed.

    Raises:
        typer.Exit: The answer is no.
    """
    if not (yes or typer.confirm(question, err=True)):
        say("nothing was changed")
        raise typer.Exit(INCOMPLETE)
