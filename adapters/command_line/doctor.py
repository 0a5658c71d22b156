# ruff: noqa: FBT002 - typer reads options off a function's parameters
"""``mnemoscope doctor``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from .outcome import UNHEALTHY


def doctor(
    scope: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            envvar="MNEMOSCOPE_SCOPE",
            help="Your Mnemoscope, or a function that returns one. "
            "Default: what the environment describes.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """
    Look at every sink, store, queue, key and model, and say how they are.

    Exits with 0 if nothing failed, else with 1. Changes nothing.
    """
    from .diagnosis import diagnose, show  # noqa: PLC0415 - loads every sink

    with Console(stderr=True).status("looking around"):
        health = diagnose(scope)
    show(health, Console(), json=json)
    raise typer.Exit(0 if health.ok else UNHEALTHY)
