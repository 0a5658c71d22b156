"""Numbers of people and sole traders in Ukraine, Russia, Belarus, the Caucasus and Central Asia."""

from __future__ import annotations

from .check_digits import Check, all_of, check_character, date_at, part

_SNILS_FROM = 1_001_998
_LAST_OF_11 = "01234567890"
_INN = check_character((2, 4, 10, 3, 5, 9, 4, 6, 8), _LAST_OF_11)
_INN_11 = check_character((7, 2, 4, 10, 3, 5, 9, 4, 6, 8), _LAST_OF_11)
_INN_12 = check_character((3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8), _LAST_OF_11)
_IDNP = check_character((7, 3, 1, 7, 3, 1, 7, 3, 1, 7, 3, 1), "0123456789")
_PINFL = check_character((7, 3, 1, 7, 3, 1, 7, 3, 1, 7, 3, 1, 7), "0123456789")
_BELARUSIAN = check_character((7, 3, 1, 7, 3, 1, 7, 3, 1, 7, 3, 1, 7), "0123456789")
_RNOKPP = (-1, 5, 7, 9, 4, 6, 10, 5, 7)
_UNP = (29, 23, 19, 17, 13, 7, 5, 3)


def _snils(number: str) -> bool:
    total = sum(int(char) * (9 - index) for index, char in enumerate(number[:9]))
    return int(number[:9]) >= _SNILS_FROM and total % 101 % 100 == int(number[9:])


def _ogrn(number: str) -> bool:
    modulus = len(number) - 2
    return int(number[:-1]) % modulus % 10 == int(number[-1])


def _rnokpp(number: str) -> bool:
    total = sum(int(char) * weight for char, weight in zip(number, _RNOKPP, strict=False))
    return total % 11 % 10 == int(number[9])


def _edrpou(number: str) -> bool:
    weights = (1, 2, 3, 4, 5, 6, 7) if number[0] not in "345" else (7, 1, 2, 3, 4, 5, 6)
    for added in (0, 2):
        pairs = zip(number, weights, strict=False)
        rest = sum(int(char) * (weight + added) for char, weight in pairs) % 11
        if rest < 10:  # noqa: PLR2004 - what one digit can say
            return rest == int(number[7])
    return number[7] == "0"


def _iin(number: str) -> bool:
    for shift in (0, 2):
        digits = enumerate(number[:11], start=shift)
        rest = sum(int(char) * (1 + index % 11) for index, char in digits) % 11
        if rest < 10:  # noqa: PLR2004 - what one digit can say
            return rest == int(number[11])
    return False


def _unp(number: str) -> bool:
    total = sum(int(char) * weight for char, weight in zip(number, _UNP, strict=False))
    return total % 11 == int(number[8])


CHECKS: dict[str, Check] = {
    "ru tax number": all_of(part(0, 11, _INN_11), _INN_12),
    "ru tax number 2": _INN,
    "ru snils": _snils,
    "ru ogrn": _ogrn,
    "ua tax number": _rnokpp,
    "ua company number": _edrpou,
    "by personal number": _BELARUSIAN,
    "by unp": _unp,
    "md idnp": all_of(lambda number: number[0] in "02", _IDNP),
    "kz iin": all_of(date_at(0, "yymmdd"), _iin),
    "kz bin": _iin,
    "uz pinfl": all_of(date_at(1, "ddmmyy"), _PINFL),
}
