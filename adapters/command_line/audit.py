"""``mnemoscope audit``: what the agent's memory was asked and told, and when."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .outcome import say

audit = typer.Typer(
    help="What the agent's memory was asked and told, and when.", no_args_is_help=True
)


@audit.command("export")
def audit_export(
    customer: Annotated[str, typer.Option(metavar="ID", help="Whose history.")],
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of which tenant, where there are several.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write here. Default: standard output.")
    ] = None,
    audit_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="sqlite:///path. Default: MNEMOSCOPE_AUDIT_URL."),
    ] = None,
) -> None:
    """
    Write what an agent remembered about a customer, and when, as JSON lines.

    One line for each read and write: time, agent, feature, store, redacted content.
    """
    from ...memory.front_door import open_audit  # noqa: PLC0415

    given = {"audit_url": audit_url} if audit_url else {}
    trail = open_audit(**given)
    rows = _export(trail, customer, tenant, out)
    say(f"{rows} operations" if rows else "no data held")
    say("from the audit log alone: the stores themselves were not asked")


def _export(trail: Any, customer: str, tenant: str | None, out: Path | None) -> int:
    from ...audit.export import export  # noqa: PLC0415

    history = trail.history(customer, tenant)
    if out is None:
        return export(history, sys.stdout.buffer)
    with out.open("wb") as file:
        return export(history, file)
