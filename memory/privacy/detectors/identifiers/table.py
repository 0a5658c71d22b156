"""The table of kinds: ``data/kinds.txt``."""

from __future__ import annotations

from functools import cache

from .check_digits import read_check
from .kinds import Bare, IdentifierKind
from .rows import read_rows


@cache
def read_kinds() -> tuple[IdentifierKind, ...]:
    """Return every kind of identifier, in the order of the table."""
    return tuple(map(_kind, read_rows("kinds")))


def _kind(line: str) -> IdentifierKind:
    country, name, entity, bare, shape, check, words = line.split(" ; ")
    return IdentifierKind(name, country, entity, Bare(bare), shape, read_check(check), words)
