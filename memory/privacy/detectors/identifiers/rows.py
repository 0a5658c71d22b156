"""Tables of this package: files in ``data/``, one row a line, comments behind ``#``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

_DATA = files(__package__ or __name__).joinpath("data")


@cache
def read_rows(name: str) -> tuple[str, ...]:
    """Return the rows of ``data/<name>.txt``, in the file's order."""
    lines = _DATA.joinpath(f"{name}.txt").read_text("utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))
