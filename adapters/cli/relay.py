"""``mnemoscope relay``."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from .exit_codes import UNHEALTHY, UNUSABLE, CommandError, say


def relay(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="The folder. Else MNEMOSCOPE_RELAY."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only say whether a relay reads DIR: 0 if one does, else 1."),
    ] = False,
) -> None:
    """
    Deliver the events of all processes of this machine to the sinks.

    Of all that append to files in DIR: those with MNEMOSCOPE_RELAY=DIR. The sinks are those of the
    environment. Runs until it is stopped, by SIGTERM or Ctrl-C. Stop, kill and start it at any
    time: what the sinks had not taken is sent again. Exits with 2 if another relay reads DIR.
    """
    from ...memory.errors import ConfigurationError
    from ...memory.settings import load_settings
    from ...telemetry.relay.folder import FolderTakenError, standing

    settings = load_settings()
    chosen = folder or settings.relay
    if chosen is None:
        raise ConfigurationError("relay takes the folder as DIR, or set MNEMOSCOPE_RELAY")
    if check:
        state = standing(chosen)
        say(state.detail)
        raise typer.Exit(0 if state.is_alive else UNHEALTHY)
    from ...memory.build import build_relay
    from ...telemetry.relay.relay import collect_seldom

    try:
        found = build_relay(settings, chosen)
    except FolderTakenError as exc:
        raise CommandError(str(exc), UNUSABLE) from exc
    collect_seldom()
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        # No more than that: a handler runs between any two steps of the relay.
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    names = ", ".join(feed.sink for feed in found.feeds) or "no sink"
    say(f"mnemoscope relay reads {chosen} and delivers to {names}")
    found.run(stopping)
