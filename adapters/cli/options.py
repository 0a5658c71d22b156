"""Options that several commands share."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import Annotated

import typer

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
TIMES = (
    "90s, 30m, 24h or 7d ago, a day, today, yesterday, or an ISO 8601 time (UTC, or its own zone)."
)
"""The help of an option that takes a time."""
