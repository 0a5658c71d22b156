"""Numbers of people and sole traders in Poland, Germany, Austria, Switzerland and Hungary."""

from __future__ import annotations

from collections import Counter

from .check_digits import (
    Check,
    all_of,
    any_of,
    check_character,
    date_at,
    is_day,
    luhn,
    luhn_sum,
    mod_11_10,
    mod_97_10,
    part,
    weighted_sum,
)

_DOCUMENT = (7, 3, 1, 7, 3, 1, 7, 3, 1)
_NIP = check_character((6, 5, 7, 2, 3, 4, 5, 6, 7), "0123456789-")
_REGON = check_character((8, 9, 2, 3, 4, 5, 6, 7), "01234567890")
_REGON_14 = check_character((2, 4, 8, 5, 0, 9, 7, 3, 6, 1, 2, 4, 8), "01234567890")
_SWISS_UID = check_character((5, 4, 3, 2, 7, 6, 5, 4), "0-987654321")


def _pesel_date(number: str) -> bool:
    return is_day(int(number[2:4]) % 20, int(number[4:6]))


def _nrb(number: str) -> bool:
    return mod_97_10(number[2:] + "PL" + number[:2])


def _steuer_id(number: str) -> bool:
    counts = Counter(number[:10]).most_common(2)
    repeated = counts[0][1] in {2, 3} and counts[1][1] == 1
    return number[0] != "0" and repeated and mod_11_10(number)


def _letter_as_two_digits(number: str) -> str:
    return "".join(f"{ord(char) - 64:02}" if char.isalpha() else char for char in number)


def _cross_sums(number: str, weights: tuple[int, ...]) -> bool:
    digits = _letter_as_two_digits(number)
    products = (int(digit) * weight for digit, weight in zip(digits, weights, strict=False))
    return sum(sum(divmod(product, 10)) for product in products) % 10 == int(digits[-1])


def _rvnr(number: str) -> bool:
    return _cross_sums(number, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)) and date_at(
        2, "ddmmyy", day_offsets=(0, 50)
    )(number)


def _kvnr(number: str) -> bool:
    return _cross_sums(number, (1, 2, 1, 2, 1, 2, 1, 2, 1, 2))


def _svnr_date(number: str) -> bool:
    day, month = int(number[4:6]), int(number[6:8])
    return is_day(month, day) or (month in {13, 14, 15} and 1 <= day <= 31)  # noqa: PLR2004


def _atu(number: str) -> bool:
    return (luhn_sum(number[:-1]) + int(number[-1])) % 10 == 6  # noqa: PLR2004


def _rodne_cislo(number: str) -> bool:
    month = int(number[2:4]) % 50
    day = is_day(month % 20 if month > 12 else month, int(number[4:6]))  # noqa: PLR2004
    body, key = int(number[:9]), int(number[9:] or "0")
    return day and (len(number) == 9 or body % 11 % 10 == key)  # noqa: PLR2004


def _ico(number: str) -> bool:
    total = sum(int(char) * (8 - index) for index, char in enumerate(number[:7]))
    return (11 - total % 11) % 10 == int(number[7])


def _hungarian(number: str) -> bool:
    total = sum(int(char) * (index + 1) for index, char in enumerate(number[:10])) % 11
    return number[0] in "1234" and date_at(1, "yymmdd")(number) and total == int(number[10])


_ADOAZONOSITO = all_of(
    lambda number: number[0] == "8",
    check_character((1, 2, 3, 4, 5, 6, 7, 8, 9), "0123456789-"),
)
_TAJ = check_character((3, 7, 3, 7, 3, 7, 3, 7), "0123456789")
_ADOSZAM = weighted_sum((9, 7, 3, 1, 9, 7, 3, 1), 10)


def _slovak_vat(number: str) -> bool:
    return int(number) % 11 == 0 and number[0] != "0" and number[2] in "2346789"


CHECKS: dict[str, Check] = {
    "pl pesel": all_of(_pesel_date, check_character((1, 3, 7, 9, 1, 3, 7, 9, 1, 3), "0987654321")),
    "pl nip": _NIP,
    "pl vat number": part(2, None, _NIP),
    "pl regon": _REGON,
    "pl regon 2": all_of(part(0, 9, _REGON), _REGON_14),
    "pl identity card": check_character((7, 3, 1, 7, 3, 1, 7, 3), "0123456789", at=3),
    "pl passport": check_character((7, 3, 1, 7, 3, 1, 7, 3), "0123456789", at=2),
    "pl account number": _nrb,
    "de tax id": _steuer_id,
    "de identity card": check_character(_DOCUMENT, "0123456789"),
    "de pension insurance number": _rvnr,
    "de health insurance number": _kvnr,
    "de vat number": part(2, None, mod_11_10),
    "at social insurance number": all_of(
        check_character((3, 7, 9, 5, 8, 4, 2, 1, 6), "0123456789-", at=3), _svnr_date
    ),
    "at vat number": part(3, None, _atu),
    "at tax number": luhn,
    "ch ahv/avs number": weighted_sum((1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1), 10),
    "ch uid": part(3, None, _SWISS_UID),
    "cz rodné číslo": _rodne_cislo,
    "cz ičo": _ico,
    "cz dič": part(2, None, _ico),
    "cz dič 2": part(2, None, _rodne_cislo),
    "sk ič dph": part(2, None, any_of(_slovak_vat, _rodne_cislo)),
    "hu personal number": _hungarian,
    "hu social security number": _TAJ,
    "hu tax id": _ADOAZONOSITO,
    "hu tax number": part(0, 8, _ADOSZAM),
    "hu vat number": part(2, None, _ADOSZAM),
}
