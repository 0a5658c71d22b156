"""Tables of this package: files in ``data/``, one row a line, comments behind ``#``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from ..word_lists import read_lines

_DATA = files(__package__ or __name__).joinpath("data")


@cache
def read_rows(name: str) -> tuple[str, ...]:
    """Return the rows of ``data/<name>.txt``, in the file's order."""
    return read_lines(_DATA.joinpath(f"{name}.txt"))
