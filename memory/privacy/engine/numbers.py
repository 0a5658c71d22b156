"""
Numbers that their labels call personal: ``{"ssn": 123456789}``.

What is stored in place of one is a pseudonym that says of which type the number was, so that a
number stays apart from the text of its digits, and comes back as a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, TypeAlias

from .operators import NUMBER_TYPES

Number: TypeAlias = int | float | Decimal

_TYPES: Final[Mapping[str, Callable[[str], Number]]] = {
    "int": int,
    "float": float,
    "Decimal": Decimal,
}
_LEAST: Final = 100
_MOST: Final = 10**20
_EXACT: Final = 2.0**53

_SHOWN: Final = re.compile(rf"({NUMBER_TYPES})\((.{{1,64}})\)", re.DOTALL)


class NumberText(str):
    """The digits of a number, with the number, which is what stands in the call's arguments."""

    __slots__ = ("number",)

    number: Number


def text_of(number: Number) -> NumberText | None:
    """Return the digits of a whole number that may be somebody's. None: it is none."""
    if not _LEAST <= number < _MOST:
        return None
    if isinstance(number, float):
        digits = f"{number:.0f}" if number.is_integer() and number < _EXACT else ""
    else:
        digits = str(number)
    if not digits.isdigit():
        return None
    text = NumberText(digits)
    text.number = number
    return text


def stand_in(number: Number, replacement: str) -> str:
    """Return what is stored in place of *number*, whose digits became *replacement*."""
    return f"{type(number).__name__}({replacement})" if replacement else ""


def number_shown(text: str) -> Number | str:
    """Return the number that a stand-in shows with its original, or *text* if it is none."""
    match = _SHOWN.fullmatch(text)
    if match is None or "<" in match[2]:
        return text
    # The original may be spelled as another text did: with separators.
    digits = "".join(filter(str.isdigit, match[2]))
    return _TYPES[match[1]](digits) if digits else text
