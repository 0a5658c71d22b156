"""
Check digits: the algorithms of standards, and what national numbers are put together from.

A check takes a number in capitals without separators, and returns whether it may be one. It never
raises for letters and digits of ASCII.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Check = Callable[[str], bool]

_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_BIRTH_YEARS = range(1890, 2036)
_TEN, _TWELVE = 10, 12

_VERHOEFF_PRODUCT = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_VERHOEFF_PERMUTATION = (
    "0123456789", "1576283094", "5803796142", "8916043527",
    "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip


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


def check_character(weights: Sequence[int], of_rest: str, at: int = -1) -> Check:
    """
    Return the check of a weighted sum.

    Args:
        weights: Factors of the characters before the check character; A counts 10, Z 35.
        of_rest: The check character for each rest of the sum, ``-`` where there is none. Its
            length is the modulus.
        at: Where the check character stands.
    """

    def holds(number: str) -> bool:
        others = number[:at] + number[at + 1 :] if at != -1 else number[:-1]
        total = sum(int(char, 36) * weight for char, weight in zip(others, weights, strict=False))
        return number[at] == of_rest[total % len(of_rest)]

    return holds


def weighted_sum(weights: Sequence[int], modulus: int, rest: int = 0) -> Check:
    """Return the check that the sum of all digits, weighted, leaves *rest*."""

    def holds(number: str) -> bool:
        total = sum(int(char, 36) * weight for char, weight in zip(number, weights, strict=False))
        return total % modulus == rest

    return holds


def all_of(*checks: Check) -> Check:
    """Return the check that all *checks* hold."""
    return lambda number: all(check(number) for check in checks)


def any_of(*checks: Check) -> Check:
    """Return the check that one of *checks* holds."""
    return lambda number: any(check(number) for check in checks)


def part(start: int, end: int | None, check: Check) -> Check:
    """Return *check* of a part of the number."""
    return lambda number: check(number[start:end])


def date_at(start: int, order: str, *, day_offsets: Sequence[int] = (0,)) -> Check:
    """
    Return the check that a date of birth stands at *start*.

    Args:
        start: Where it begins.
        order: ``yymmdd``, ``ddmmyy``, ``yyyymmdd`` or ``ddmmyyyy``.
        day_offsets: What some numbers add to the day.
    """
    year, month, day = (
        slice(start + order.index(unit), start + order.rindex(unit) + 1) for unit in "ymd"
    )

    def holds(number: str) -> bool:
        date = number[start : start + len(order)]
        if not date.isdigit():
            return False
        if "yyyy" in order and int(number[year]) not in _BIRTH_YEARS:
            return False
        return any(is_day(int(number[month]), int(number[day]) - offset) for offset in day_offsets)

    return holds


def is_day(month: int, day: int) -> bool:
    """Return whether there is such a day in a leap year."""
    return 1 <= month <= _TWELVE and 1 <= day <= _DAYS[month - 1]


def unchecked(_number: str) -> bool:
    """Hold for every number: its kind has no check digit."""
    return True
