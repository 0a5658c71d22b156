"""``mnemoscope demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

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
        typer.Option(metavar="PATH", help="A folder that keeps what the run wrote."),
    ] = None,
    break_store: Annotated[
        Literal["mem0", "qdrant", "store", "checkpointer"] | None,
        typer.Option("--break", help="Break this store half-way through."),
    ] = None,
    how: Annotated[
        Literal["down", "slow", "flapping"], typer.Option(help="How the store is broken.")
    ] = "down",
    surge: Annotated[
        Literal["draft", "outline"] | None, typer.Option(help="Triple its spend half-way through.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER:NAME", help="Use a real chat model, not the script."),
    ] = None,
    speaker: Annotated[
        str | None,
        typer.Option(metavar="SPEAKER", help="Of the two, the one whose memory is shown."),
    ] = None,
    export: Annotated[
        bool, typer.Option("--export", help="Export the second customer's data at the end.")
    ] = False,
    erase: Annotated[
        bool, typer.Option("--erase", help="Erase the second customer at the end.")
    ] = False,
    mcp: Annotated[
        bool,
        typer.Option("--mcp", help="Reach the memory over MCP, from a server that changes."),
    ] = False,
    json: Json = False,
) -> None:
    """
    Watch an agent with memory answer three questions.

    Its memory is mem0, Qdrant and LangGraph's store and checkpointer. Exits with 1 if something
    failed that was not broken on purpose.
    """
    from mnemoscope.demo import ConversationError, DemoOptions, run_demo

    options = DemoOptions(
        conversation=conversation,
        out=out,
        break_store=break_store,
        how=how,
        surge=surge,
        model=model,
        speaker=speaker,
        export=export,
        erase=erase,
        mcp=mcp,
        json=json,
    )
    try:
        raise typer.Exit(run_demo(options, Console()))
    except ConversationError as exc:
        raise CommandError(str(exc)) from exc
