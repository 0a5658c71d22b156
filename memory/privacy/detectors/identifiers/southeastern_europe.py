"""Numbers of people and sole traders in the south-east of Europe, with Turkey and Cyprus."""

from __future__ import annotations

from .check_digits import (
    Check,
    all_of,
    check_character,
    date_at,
    is_day,
    luhn,
    mod_11_10,
    part,
    weighted_sum,
)

_CYPRIOT_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
_CNP_DIGIT = check_character((2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9), "01234567891")
_EGN_DIGIT = check_character((2, 4, 8, 5, 10, 9, 7, 3, 6), "01234567890")
_JMBG_DIGIT = check_character((7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), "00987654321")
_ROMANIAN_WEIGHTS = (7, 5, 3, 2, 1, 7, 5, 3, 2)
_SLOVENIAN_TAX = check_character((8, 7, 6, 5, 4, 3, 2), "-0987654321")
_BULGARIAN_OTHER = check_character((4, 3, 2, 7, 6, 5, 4, 3, 2), "0-987654321")
_EIK_DIGITS = 9
_LNCH = check_character((21, 19, 17, 13, 11, 9, 7, 3, 1), "0123456789")


def _egn(number: str) -> bool:
    month = int(number[2:4])
    in_year = any(is_day(month - offset, int(number[4:6])) for offset in (0, 20, 40))
    return in_year and _EGN_DIGIT(number)


def _romanian(number: str) -> bool:
    return number[0] in "123456789" and date_at(1, "yymmdd")(number) and _CNP_DIGIT(number)


def _romanian_company(number: str) -> bool:
    digits = number.removeprefix("RO").zfill(10)
    pairs = zip(digits, _ROMANIAN_WEIGHTS, strict=False)
    total = sum(int(char) * weight for char, weight in pairs)
    return total * 10 % 11 % 10 == int(digits[9])


def _afm(number: str) -> bool:
    total = sum(int(char) << (8 - index) for index, char in enumerate(number[:8]))
    return total % 11 % 10 == int(number[8]) and number != "000000000"


def _jmbg(number: str) -> bool:
    year = int(number[4:7])
    in_life = year >= 890 or year <= 35  # noqa: PLR2004 - of 1890 and 2035
    return in_life and is_day(int(number[2:4]), int(number[:2])) and _JMBG_DIGIT(number)


def _cypriot(number: str) -> bool:
    total = sum(
        int(char) if index % 2 else _CYPRIOT_ODD[int(char)] for index, char in enumerate(number[:8])
    )
    return number[8] == chr(65 + total % 26)


def _eik(number: str) -> bool:
    rest = sum(int(char) * (index + 1) for index, char in enumerate(number[:8])) % 11
    if rest == 10:  # noqa: PLR2004 - what one digit cannot say
        rest = sum(int(char) * (index + 3) for index, char in enumerate(number[:8])) % 11
    return rest % 10 == int(number[8])


def _bulgarian_vat(number: str) -> bool:
    digits = number[2:]
    if len(digits) == _EIK_DIGITS:
        return _eik(digits)
    return _egn(digits) or _LNCH(digits) or _BULGARIAN_OTHER(digits)


def _maltese_vat(number: str) -> bool:
    return weighted_sum((3, 4, 6, 7, 8, 9, 10, 1), 37)(number[2:])


def _tckn(number: str) -> bool:
    digits = [int(char) for char in number]
    odd, even = sum(digits[0:9:2]), sum(digits[1:8:2])
    tenth, last = (odd * 7 - even) % 10, sum(digits[:10]) % 10
    return digits[0] != 0 and digits[9] == tenth and digits[10] == last


def _vkn(number: str) -> bool:
    total = 0
    for index, char in enumerate(number[:9]):
        moved = (int(char) + 9 - index) % 10
        total += (moved * 2 ** (9 - index) % 9 or 9) if moved else 0
    return (10 - total % 10) % 10 == int(number[9])


CHECKS: dict[str, Check] = {
    "ro cnp": _romanian,
    "ro cui": _romanian_company,
    "bg egn": _egn,
    "bg lnch": _LNCH,
    "bg eik": _eik,
    "bg vat number": _bulgarian_vat,
    "gr afm": _afm,
    "gr vat number": part(2, None, _afm),
    "gr amka": all_of(date_at(0, "ddmmyy"), luhn),
    "hr oib": mod_11_10,
    "hr vat number": part(2, None, mod_11_10),
    "rs jmbg": _jmbg,
    "si tax number": _SLOVENIAN_TAX,
    "si vat number": part(2, None, _SLOVENIAN_TAX),
    "cy tax number": _cypriot,
    "cy vat number": part(2, None, _cypriot),
    "mt vat number": _maltese_vat,
    "tr tckn": _tckn,
    "tr tax number": _vkn,
}
