"""The arithmetic of check digits that several standards have."""

from __future__ import annotations

from collections.abc import Iterable

_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_TEN = 10

_VERHOEFF_PRODUCT = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_VERHOEFF_PERMUTATION = (
    "0123456789", "1576283094", "5803796142", "8916043527",
    "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip


def weighted(number: str, weights: Iterable[int]) -> int:
    """Return the sum of the characters of *number*, weighted; A is 10, Z 35."""
    return sum(int(char, 36) * weight for char, weight in zip(number, weights, strict=False))


def luhn_sum(number: str) -> int:
    """Return the sum of Luhn's algorithm: every second digit from the right doubled; A is 10."""
    total = 0
    for index, char in enumerate(reversed(number)):
        doubled = int(char, 36) * (1 + index % 2)
        total += doubled - 9 if index % 2 and doubled >= _TEN else doubled
    return total


def luhn(number: str) -> bool:
    """Return whether the last digit is the check digit by Luhn's algorithm."""
    return luhn_sum(number) % 10 == 0


def verhoeff(number: str) -> bool:
    """Return whether the last digit is the check digit by Verhoeff's algorithm."""
    rest = 0
    for index, digit in enumerate(reversed(number)):
        permuted = int(_VERHOEFF_PERMUTATION[index % 8][int(digit)])
        rest = int(_VERHOEFF_PRODUCT[rest][permuted])
    return rest == 0


def mod_11_10(number: str) -> bool:
    """Return whether the last digit is the check digit by ISO 7064 MOD 11,10."""
    rest = 10
    for digit in number[:-1]:
        rest = ((rest + int(digit)) % 10 or 10) * 2 % 11
    return (rest + int(number[-1])) % 10 == 1


def mod_97_10(number: str) -> bool:
    """Return whether the number is 1 modulo 97, as ISO 7064 MOD 97-10 has it; A is 10, Z 35."""
    return int("".join(str(int(char, 36)) for char in number)) % 97 == 1


def is_day(month: int, day: int) -> bool:
    """Return whether there is such a day in a leap year."""
    return 1 <= month <= len(_DAYS) and 1 <= day <= _DAYS[month - 1]
