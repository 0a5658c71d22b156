"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
        metavar="URL", help="Where your people read docs/runbooks.md, for the links to it."
    ),
]
