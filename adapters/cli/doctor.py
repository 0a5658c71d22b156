"""``mnemoscope doctor``."""

from __future__ import annotations

import typer
from rich.console import Console

from .exit_codes import UNHEALTHY
from .options import Json, ScopeAddress


def doctor(scope: ScopeAddress = None, json: Json = False) -> None:
    """
    Check every sink, store, queue, key and model.

    Without --scope it checks what the environment describes. Exits with 0 if nothing failed, else
    with 1. Changes nothing.
    """
    from .doctor_checks import environment_health, scope_health
    from .doctor_screen import health_screen
    from .scope import scope_at

    with Console(stderr=True).status("checking"):
        health = environment_health() if scope is None else scope_health(scope_at(scope))
    if json:
        Console().print_json(data=health.as_document())
    else:
        Console().print(health_screen(health))
    raise typer.Exit(0 if health.ok else UNHEALTHY)
