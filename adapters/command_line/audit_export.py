# ruff: noqa: FBT002, PLR0913, PLR0917 - typer reads options off a function's parameters
"""``mnemoscope audit export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .outcome import INCOMPLETE

Scope = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:NAME",
        envvar="MNEMOSCOPE_SCOPE",
        help="Your Mnemoscope, or a function that returns one: it knows the stores.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="Write here: a file, or a folder. Default: this folder."),
]
Notice = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="JSON with controller and art15, for the first page."),
]
Portability = Annotated[
    bool, typer.Option("--portability", help="Only what can be taken elsewhere (GDPR Art. 20).")
]


def audit_export(
    customer: Annotated[str, typer.Option(metavar="ID", help="Whose data.")],
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of which tenant, where there are several.")
    ] = None,
    out: Out = None,
    portability: Portability = False,
    scope: Scope = None,
    notice: Notice = None,
    audit_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Of the audit trail. Default: MNEMOSCOPE_AUDIT_URL."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """
    Write all that is held about a customer, with proofs, to a zip file they can read and check.

    Exits with 0 if every store told everything, also where nothing is held; with 3 if one did not,
    or was not asked. Without --scope the stores are not asked, and the log alone answers.
    """
    from .exporting import ExportOptions, export, show  # noqa: PLC0415 - loads settings and crypto

    options = ExportOptions(
        customer=customer,
        tenant=tenant,
        out=out,
        portability=portability,
        scope=scope,
        notice=notice,
        audit_url=audit_url,
    )
    bundle = export(options, Console(stderr=True))
    show(bundle, options, json=json)
    raise typer.Exit(0 if bundle.complete else INCOMPLETE)
