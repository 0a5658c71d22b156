# ruff: noqa: FBT002, PLR0913, PLR0917 - typer reads options off a function's parameters
"""``mnemoscope audit show``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

Customer = Annotated[str | None, typer.Option(metavar="ID", help="What was done to their memory.")]
Memory = Annotated[str | None, typer.Option(metavar="ID", help="What was done to this memory.")]
Run = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        help="What this run saw, and where each of it came from. With --customer where the run's "
        "name holds their id.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(metavar="AGE|TIME", help="90s, 30m, 24h, 7d ago, or an ISO 8601 time."),
]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="AGE|TIME",
        help="With --customer: what was remembered about them at that moment.",
    ),
]
Tenant = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of which tenant, where there are several.")
]
Limit = Annotated[int, typer.Option(metavar="N", min=1, help="The newest so many operations.")]
AuditUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Of the audit trail. Default: MNEMOSCOPE_AUDIT_URL."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def audit_show(
    customer: Customer = None,
    memory: Memory = None,
    run: Run = None,
    since: Since = None,
    as_of: AsOf = None,
    tenant: Tenant = None,
    limit: Limit = 50,
    audit_url: AuditUrl = None,
    json: Json = False,
) -> None:
    """
    Browse the audit trail: by customer, memory, run and time.

    Without a customer, memory or run: the last 24 hours. Content is shown as it is stored,
    redacted. Reads the audit trail, and changes nothing.
    """
    from .browsing import ShowOptions, show  # noqa: PLC0415 - loads settings and crypto

    options = ShowOptions(
        customer=customer,
        memory=memory,
        run=run,
        since=since,
        as_of=as_of,
        tenant=tenant,
        limit=limit,
        audit_url=audit_url,
        json=json,
    )
    show(options, Console())
