# ruff: noqa: FBT002, PLR0913, PLR0917 - typer reads options off a function's parameters
"""``mnemoscope spend``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console


def spend(
    since: Annotated[
        str,
        typer.Option(metavar="AGE|TIME", help="90s, 30m, 24h, 7d ago, or an ISO 8601 time."),
    ] = "24h",
    until: Annotated[
        str | None, typer.Option(metavar="AGE|TIME", help="Likewise. Default: now.")
    ] = None,
    by: Annotated[
        str,
        typer.Option(metavar="LIST", help="Some of feature,node,model,customer."),
    ] = "feature",
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only what this tenant spent.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print the figures as CSV.")] = False,
    audit_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The audit trail. Default: MNEMOSCOPE_AUDIT_URL."),
    ] = None,
) -> None:
    """
    Say what model calls cost, and which feature's spend moved most.

    Compares with the period of equal length before. Reads the audit trail, and changes nothing.
    """
    from .bill import SpendOptions, bill  # noqa: PLC0415 - loads the audit trail
    from .bill_screen import show  # noqa: PLC0415

    options = SpendOptions(
        since=since, until=until, by=by, tenant=tenant, json=json, csv=csv, audit_url=audit_url
    )
    show(bill(options), options, Console())
