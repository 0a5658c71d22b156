# ruff: noqa: FBT002, PLR0913, PLR0917 - typer reads options off a function's parameters
"""``mnemoscope demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .outcome import CommandError


def demo(
    conversation: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A LoCoMo conversation. Default: one that ships."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep log, metrics, spans, runs and audit database here."),
    ] = None,
    break_store: Annotated[
        str | None,
        typer.Option(
            "--break",
            metavar="STORE",
            help="Break mem0, qdrant, store or checkpointer half-way through.",
        ),
    ] = None,
    how: Annotated[
        str, typer.Option(metavar="down|slow|flapping", help="How it is broken.")
    ] = "down",
    model: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER:NAME", help="A real chat model in place of the script."),
    ] = None,
    customer: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose memory the last screen shows.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Watch an agent with mem0, Qdrant and LangGraph memory answer three questions."""
    from ..demo import ConversationError, DemoOptions, run_demo  # noqa: PLC0415 - loads every store

    options = DemoOptions(
        conversation=conversation,
        out=out,
        break_store=break_store,
        how=how,
        model=model,
        customer=customer,
        json=json,
    )
    try:
        code = run_demo(options, Console())
    except ConversationError as exc:
        raise CommandError(str(exc)) from exc
    raise typer.Exit(code)
