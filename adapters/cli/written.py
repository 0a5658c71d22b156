"""Files that a command writes into a folder of the user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import typer


def write_files(folder: Path, texts: Mapping[str, str]) -> None:
    """
    Write *texts* by their path in *folder*, which is made if it is not there, and say so.

    Raises:
        OSError: The folder or a file cannot be written.
    """
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        typer.echo(f"wrote {path}")


def write_linked(
    folder: Path,
    runbooks: str | None,
    texts: Callable[[str], Mapping[str, str]],
    *,
    kubernetes: bool,
) -> None:
    """
    Write what links to the runbooks into *folder*, and the runbooks too, unless it links elsewhere.

    Args:
        folder: Made if it is not there.
        runbooks: The address to link to. None: the file that is written, by its place on this
            machine, or in a cluster, which has no such place, by its name alone.
        texts: Returns the texts by their path in *folder*, with links to an address.
        kubernetes: Whether it is for a cluster.

    Raises:
        OSError: The folder or a file cannot be written.
    """
    from mnemoscope.alerting.runbooks import FILE, address_in, text

    if runbooks:
        write_files(folder, texts(runbooks))
        return
    address = FILE if kubernetes else address_in(folder)
    write_files(folder, {**texts(address), FILE: text()})
    typer.echo(f"links to the runbooks lead to {address}: pass --runbooks URL for another place")
