# ruff: noqa: FBT002, PLR0913, PLR0917 - typer reads options off a function's parameters
"""``mnemoscope audit verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .outcome import USAGE, CommandError


def audit_verify(
    since: Annotated[
        int, typer.Option(metavar="N", min=0, help="Check events from number N on only.")
    ] = 0,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A checkpoint that was kept elsewhere. May be repeated."),
    ] = None,
    headers_only: Annotated[
        bool, typer.Option("--headers-only", help="Leave out the encrypted details: faster.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes. Default: one a core.")
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Check an export instead: a zip file, or its folder."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="With --bundle: the key that signed it.")
    ] = None,
    audit_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Of the audit trail. Default: MNEMOSCOPE_AUDIT_URL."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """
    Recompute everything that the audit trail, or an export of it, claims.

    Exits with 0 if all of it holds, 1 if something was changed, 2 if events were lost and the log
    says so, 3 if something cannot be told, 4 for wrong usage.
    """
    from .verifying import VerifyOptions, verified, verified_bundle  # noqa: PLC0415 - loads crypto

    console = Console(stderr=True)
    if bundle is not None:
        if since or checkpoint or headers_only or audit_url or jobs:
            raise CommandError("--bundle is checked by itself: --key alone goes with it", USAGE)
        raise typer.Exit(verified_bundle(bundle, key, console, json=json))
    if key is not None:
        raise CommandError("--key goes with --bundle", USAGE)
    options = VerifyOptions(
        since=since,
        checkpoints=tuple(checkpoint or ()),
        with_details=not headers_only,
        audit_url=audit_url,
        jobs=jobs,
    )
    raise typer.Exit(verified(options, console, json=json))
