"""Vehicle identification numbers, by their check digit."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..lazy_pattern import compile_later
from ..prefilter import TextFeatures

_VIN = compile_later(
    r"[A-HJ-NPR-Z1-9](?<![A-Za-z0-9/+_=.].)[A-HJ-NPR-Z0-9]{12}\d{4}(?![A-Za-z0-9/+_=])"
)
_VIN_VALUES = dict(
    zip(
        "ABCDEFGHJKLMNPRSTUVWXYZ",
        (1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 7, 9, 2, 3, 4, 5, 6, 7, 8, 9),
        strict=True,
    )
)
_VIN_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)


def find_vehicle_numbers(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find vehicle identification numbers by their check digit."""
    for match in _VIN.finditer(text):
        vin = match.group()
        if not vin.isdigit() and not vin.isalpha() and _vin_checks(vin):
            yield Finding(*match.span(), "VEHICLE_ID", 0.9, "check digit of a vehicle")


def _vin_checks(vin: str) -> bool:
    values = (int(char) if char.isdigit() else _VIN_VALUES[char] for char in vin)
    rest = sum(value * weight for value, weight in zip(values, _VIN_WEIGHTS, strict=True)) % 11
    return vin[8] == ("X" if rest == 10 else str(rest))  # noqa: PLR2004 - the standard's own
