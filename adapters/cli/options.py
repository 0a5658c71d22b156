"""Options that several commands share."""

from __future__ import annotations

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
