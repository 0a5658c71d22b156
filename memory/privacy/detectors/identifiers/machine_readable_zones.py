"""Machine-readable zones of passports, visas and identity cards, by their check digits."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..lazy_pattern import compile_later
from ..prefilter import TextFeatures

_BREAK = r"(?:[ \t]*(?:\r?\n|\\n|[ ])[ \t]*)"
_DATES = r"\d{6}[0-9<][MFX<]\d{6}[0-9<]"
_ZONES = compile_later(
    rf"(?<![A-Z0-9<])(?:"
    rf"(?:[PV][A-Z0-9<][A-Z<]{{3}}[A-Z<]{{31,39}}{_BREAK})?"
    rf"(?P<passport>[A-Z0-9<]{{9}}[0-9<][A-Z<]{{3}}{_DATES}[A-Z0-9<]{{8,16}})"
    rf"|[ACI][A-Z0-9<][A-Z<]{{3}}(?P<card>[A-Z0-9<]{{9}}[0-9<])[A-Z0-9<]{{15}}{_BREAK}"
    rf"(?P<dates>{_DATES})[A-Z<]{{3}}[A-Z0-9<]{{11}}[0-9]{_BREAK}[A-Z<]{{30}})"
    rf"(?![A-Z0-9<])"
)
_VALUES = {char: value for value, char in enumerate("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")} | {
    "<": 0
}


def find_machine_readable_zones(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find the zones whose check digits of number and dates hold."""
    for match in _ZONES.finditer(text):
        line = match["passport"]
        number = line[:10] if line else match["card"]
        dates = line[13:28] if line else match["dates"]
        fields = (number, dates[:7], dates[8:15])
        if all(_has_check_digit(field) for field in fields):
            why = "machine-readable zone with check digits"
            yield Finding(*match.span(), "PASSPORT", 1.0, why)


def _has_check_digit(field: str) -> bool:
    pairs = enumerate(field[:-1])
    total = sum(_VALUES[char] * (7, 3, 1)[index % 3] for index, char in pairs)
    return total % 10 == _VALUES[field[-1]]
