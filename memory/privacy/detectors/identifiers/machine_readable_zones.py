"""Machine-readable zones of passports, visas and identity cards, by their check digits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from ..finding import Finding
from ..lazy_pattern import compile_later
from ..prefilter import TextFeatures
from .arithmetic import weighted

_BREAK = r"(?:[ \t]*(?:\r?\n|\\n|[ ])[ \t]*)"
_BIRTH_AND_EXPIRY = r"(?P<{0}birth>\d{{6}}[0-9<])[MFX<](?P<{0}expiry>\d{{6}}[0-9<])"
_ZONES = compile_later(
    rf"(?<![A-Z0-9<])(?:(?:[PV][A-Z0-9<][A-Z<]{{34,42}}{_BREAK})?(?P<number>[A-Z0-9<]{{9}}[0-9<])"
    rf"[A-Z<]{{3}}{_BIRTH_AND_EXPIRY.format('')}[A-Z0-9<]{{8,16}}"
    rf"|[ACI][A-Z0-9<][A-Z<]{{3}}(?P<card>[A-Z0-9<]{{9}}[0-9<])[A-Z0-9<]{{15}}{_BREAK}"
    rf"{_BIRTH_AND_EXPIRY.format('card_')}[A-Z<]{{3}}[A-Z0-9<]{{11}}[0-9]{_BREAK}[A-Z<]{{30}})"
    rf"(?![A-Z0-9<])"
)


def find_machine_readable_zones(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find the zones whose check digits of number and dates hold."""
    for match in _ZONES.finditer(text):
        fields = filter(None, match.groups())
        if all(_has_check_digit(each.replace("<", "0")) for each in fields):
            yield Finding(*match.span(), "PASSPORT", 1.0, "machine-readable zone by check digits")


def _has_check_digit(field: str) -> bool:
    return weighted(field[:-1], cycle((7, 3, 1))) % 10 == int(field[-1])
