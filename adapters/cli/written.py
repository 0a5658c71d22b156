"""Files that a command writes into a folder of the user's."""

from __future__ import annotations

from collections.abc import Mapping
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
