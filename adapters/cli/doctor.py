"""``mnemoscope doctor``."""

from __future__ import annotations

import typer
from rich.console import Console

from .exit_codes import UNHEALTHY
from .options import Json, ScopeAddress


def doctor(scope: ScopeAddress = None, json: Json = False) -> None:
    """
    Check every sink, store, queue, key and model.

    Without --scope it checks what the environment describes, and so it does where the application
    of --scope has not run yet. Exits with 0 if nothing failed, else with 1. Leaves everything as it
    was: a file that it makes to see whether one can be is removed.
    """
    from .doctor_checks import environment_health, health_at

    with Console(stderr=True).status("checking"):
        health = environment_health() if scope is None else health_at(scope)
    if json:
        Console().print_json(data=health.as_document())
    else:
        Console().print(health)
    raise typer.Exit(0 if health.ok else UNHEALTHY)
