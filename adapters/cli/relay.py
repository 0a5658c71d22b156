"""``mnemoscope relay``."""

from __future__ import annotations

from pathlib import Path
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
    from ...memory.settings import AUTO, load_settings
    from ...telemetry.relay.folder import FolderTakenError, standing

    settings = load_settings()
    chosen = folder or settings.relay
    if chosen is None or chosen == AUTO:
        raise ConfigurationError("relay takes the folder as DIR, or set MNEMOSCOPE_RELAY")
    if check:
        state = standing(chosen)
        say(state.detail)
        raise typer.Exit(0 if state.is_alive else UNHEALTHY)
    from ...memory.building.relay import build_relay
    from ...memory.relay_process import deliver

    try:
        found = build_relay(settings, chosen)
    except FolderTakenError as exc:
        raise CommandError(str(exc), UNUSABLE) from exc
    names = ", ".join(feed.sink for feed in found.feeds) or "no sink"
    say(f"mnemoscope relay reads {chosen} and delivers to {names}")
    deliver(found)
