"""The table of kinds: ``data/kinds.txt``, with the checks of the regions' modules."""

from __future__ import annotations

from functools import cache

from . import (
    african,
    american,
    asian,
    central_europe,
    eastern_europe,
    northern_europe,
    southeastern_europe,
    western_europe,
)
from .check_digits import Check, luhn, unchecked
from .kinds import Bare, IdentifierKind
from .rows import read_rows

_CHECKS: dict[str, Check] = {
    "-": unchecked,
    "any": lambda _: True,
    "imei": luhn,
    **central_europe.CHECKS,
    **western_europe.CHECKS,
    **northern_europe.CHECKS,
    **southeastern_europe.CHECKS,
    **eastern_europe.CHECKS,
    **american.CHECKS,
    **asian.CHECKS,
    **african.CHECKS,
}


@cache
def read_kinds() -> tuple[IdentifierKind, ...]:
    """Return every kind of identifier, in the order of the table."""
    return tuple(map(_kind, read_rows("kinds")))


def _kind(line: str) -> IdentifierKind:
    country, name, entity, bare, shape, check, words = line.split(" ; ")
    return IdentifierKind(name, country, entity, Bare(bare), shape, _CHECKS[check], words)
