# ruff: noqa: FBT002, PLR0913, PLR0917 - typer reads options off a function's parameters
"""``mnemoscope demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
    surge: Annotated[
        str | None,
        typer.Option(metavar="draft|outline", help="Triple its spend half-way through."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER:NAME", help="A real chat model in place of the script."),
    ] = None,
    customer: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose memory the last screen shows.")
    ] = None,
    export: Annotated[
        bool, typer.Option("--export", help="The second customer asks for all that is held.")
    ] = False,
    erase: Annotated[bool, typer.Option("--erase", help="And to be forgotten.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Watch an agent with mem0, Qdrant and LangGraph memory answer three questions."""
    asked = {"conversation": conversation, "out": out, "model": model, "customer": customer}
    trouble = {"break_store": break_store, "how": how, "surge": surge}
    parting = {"export": export, "erase": erase}
    raise typer.Exit(_played(**asked, **trouble, **parting, json=json))


def _played(**asked: Any) -> int:
    from ..demo import ConversationError, DemoOptions, run_demo  # noqa: PLC0415 - loads every store

    try:
        return run_demo(DemoOptions(**asked), Console())
    except ConversationError as exc:
        raise CommandError(str(exc)) from exc
