# ruff: noqa: FBT002 - typer reads options off a function's parameters
"""``mnemoscope redact``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .outcome import CommandError, say


def redact(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="UTF-8 text. Default: standard input.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say on standard error what was replaced, and why.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="spaCy package or path, or none: see MNEMOSCOPE_PII_MODEL."
        ),
    ] = None,
    operator: Annotated[
        str | None,
        typer.Option(
            metavar="tag|pseudonym|mask",
            help="What stands in its place. Default: MNEMOSCOPE_PII_OPERATORS.",
        ),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose pseudonyms to use.")
    ] = None,
) -> None:
    """
    Replace the personal data in a text, as is done before it is stored.

    Nothing is kept: pseudonyms are those of the stores, and do not go to the vault.

    Exits with 2 if the text is not UTF-8; what could not be redacted is not printed.
    """
    from .redaction import NotTextError, RedactOptions, redact_text  # noqa: PLC0415 - loads Presidio

    options = RedactOptions(
        file=file, operator=operator, model=model, tenant=tenant, explain=explain
    )
    try:
        redact_text(options, say)
    except NotTextError as exc:
        raise CommandError(f"{file or 'standard input'}: {exc}") from exc
