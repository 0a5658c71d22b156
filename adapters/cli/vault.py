"""``mnemoscope vault``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from .exit_codes import INCOMPLETE, say
from .options import Json


def rotate(
    drop_unreadable: Annotated[
        bool,
        typer.Option(
            "--drop-unreadable",
            help="Erase customers whose key no configured secret opens. It cannot be undone.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """
    Encrypt the vault's keys with the current secret.

    Then the others, those of MNEMOSCOPE_AUDIT_PREVIOUS_KEYS, can be dropped. It can be run at any
    time, and again after it was interrupted. Exits with 3 if there are keys that no configured
    secret opens.
    """
    from ...memory.building.opening import open_vault
    from ...memory.settings import load_settings

    rotation = open_vault(load_settings()).rotate(drop_unreadable=drop_unreadable)
    if json:
        Console().print_json(data=asdict(rotation))
    else:
        rewrapped = f"{rotation.rewrapped:,} customers are under the current key now"
        Console().print(
            f"{rewrapped}, {rotation.dropped:,} were dropped" if drop_unreadable else rewrapped
        )
    if rotation.unreadable:
        say(
            f"{rotation.unreadable:,} customers are under no key that is configured, or damaged: "
            "name their key in MNEMOSCOPE_AUDIT_PREVIOUS_KEYS and run this again, or erase them "
            "with --drop-unreadable"
        )
        # So that a script does not go on to drop the old secrets.
        raise typer.Exit(INCOMPLETE)
