"""
The commands of other packages, which come in by the entry point ``mnemoscope.commands``.

Each leads to a function with typer's parameters, or to an app of typer's with several. What one
package adds takes no name of the table.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ...telemetry.text import json_text
from .lazy_group import made_command

GROUP = "mnemoscope.commands"
"""The group of entry points."""


def commands(
    *, as_json: Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")] = False
) -> None:
    """
    List the commands that other packages add.

    Each has a help of its own.
    """
    found = {name: _package(entry) for name, entry in sorted(_found().items())}
    if as_json:
        typer.echo(json_text(found))
    elif not found:
        typer.echo("No installed package adds a command.")
    else:
        width = max(map(len, found))
        for name, package in found.items():
            typer.echo(f"{name:{width}}  of {package}")


def other_command(name: str) -> TyperCommand | TyperGroup | None:
    """
    Import a command of another package. None: no package has one of that name.

    Raises:
        typer.BadParameter: It cannot be imported, or is no command. One line.
    """
    entry = _found().get(name)
    if entry is None:
        return None
    try:
        made: Any = entry.load()
    except Exception as exc:  # noqa: BLE001 - of whatever kind: it is a mistake of that package
        raise typer.BadParameter(
            f"the command {name} of {_package(entry)} cannot be imported: {type(exc).__name__}"
        ) from None
    if not isinstance(made, typer.Typer):
        if not callable(made):
            raise typer.BadParameter(
                f"the command {name} of {_package(entry)} is a {type(made).__name__}: expected a "
                "function, or a typer.Typer"
            )
        return made_command(name, made)  # so that its help looks like ours
    return cast("TyperCommand | TyperGroup", get_command(made))


def _found() -> dict[str, EntryPoint]:
    return {each.name: each for each in entry_points(group=GROUP)}


def _package(entry: EntryPoint) -> str:
    return "another package" if entry.dist is None else str(entry.dist.name)
