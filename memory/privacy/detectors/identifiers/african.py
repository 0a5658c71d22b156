"""Numbers of people and sole traders in the Middle East and Africa."""

from __future__ import annotations

from .check_digits import Check, all_of, check_character, date_at, luhn

_EGYPTIAN_GOVERNORATES = {*range(1, 5), *range(11, 30), *range(31, 36), 88}


def _egyptian(number: str) -> bool:
    return date_at(1, "yymmdd")(number) and int(number[7:9]) in _EGYPTIAN_GOVERNORATES


def _south_african(number: str) -> bool:
    return number[10] in "012" and date_at(0, "yymmdd")(number) and luhn(number)


_IRANIAN = all_of(
    lambda number: len(set(number)) > 1,
    check_character(range(10, 1, -1), "01987654321"),
)

CHECKS: dict[str, Check] = {
    "il identity number": luhn,
    "ae emirates id": all_of(lambda number: number[3:5] in {"19", "20"}, luhn),
    "eg national id": _egyptian,
    "kw civil id": date_at(1, "yymmdd"),
    "ir national code": _IRANIAN,
    "za identity number": _south_african,
    "tz nida number": date_at(0, "yyyymmdd"),
}
