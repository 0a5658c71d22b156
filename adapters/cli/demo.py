"""``mnemoscope demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .exit_codes import CommandError
from .options import Json


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
        str, typer.Option(metavar="down|slow|flapping", help="How the store is broken.")
    ] = "down",
    surge: Annotated[
        str | None,
        typer.Option(metavar="draft|outline", help="Triple its spend half-way through."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER:NAME", help="Use a real chat model, not the script."),
    ] = None,
    customer: Annotated[
        str | None, typer.Option(metavar="NAME", help="The customer whose memory is shown.")
    ] = None,
    export: Annotated[
        bool, typer.Option("--export", help="Export the second customer's data at the end.")
    ] = False,
    erase: Annotated[
        bool, typer.Option("--erase", help="Erase the second customer at the end.")
    ] = False,
    json: Json = False,
) -> None:
    """Watch an agent with mem0, Qdrant and LangGraph memory answer three questions."""
    from mnemoscope.demo import ConversationError, DemoOptions, run_demo

    options = DemoOptions(
        conversation=conversation,
        out=out,
        break_store=break_store,
        how=how,
        surge=surge,
        model=model,
        customer=customer,
        export=export,
        erase=erase,
        json=json,
    )
    try:
        raise typer.Exit(run_demo(options, Console()))
    except ConversationError as exc:
        raise CommandError(str(exc)) from exc
