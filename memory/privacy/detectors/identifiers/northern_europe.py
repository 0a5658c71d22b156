"""Numbers of people and sole traders in Britain, Ireland, the Nordic and the Baltic countries."""

from __future__ import annotations

from .check_digits import (
    Check,
    all_of,
    any_of,
    check_character,
    date_at,
    is_day,
    luhn,
    part,
    weighted_sum,
)

_HETU_LETTERS = "0123456789ABCDEFHJKLMNPRSTUVWXY"
_PPS_LETTERS = "WABCDEFGHIJKLMNOPQRSTUV"
_BALTIC_WEIGHTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 1), (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)
_NHS = check_character((10, 9, 8, 7, 6, 5, 4, 3, 2), "0-987654321")
_NORWEGIAN_FIRST = check_character((3, 7, 6, 1, 8, 9, 4, 5, 2), "0-987654321")
_NORWEGIAN_SECOND = check_character((5, 4, 3, 2, 7, 6, 5, 4, 3, 2), "0-987654321")
_NORWEGIAN_COMPANY = check_character((3, 2, 7, 6, 5, 4, 3, 2), "0-987654321")
_CPR_SUM = weighted_sum((4, 3, 2, 7, 6, 5, 4, 3, 2, 1), 11)
_CVR = weighted_sum((2, 7, 6, 5, 4, 3, 2, 1), 11)
_KENNITALA = check_character((3, 2, 7, 6, 5, 4, 3, 2), "0-987654321", at=8)
_FINNISH_COMPANY = check_character((7, 9, 10, 5, 8, 4, 2), "0-987654321")
_LATVIAN_DIGIT = check_character((10, 5, 8, 4, 2, 1, 6, 3, 7, 9), "12345678900")
_LATVIAN_COMPANY = weighted_sum((9, 1, 4, 8, 3, 10, 2, 5, 7, 6, 1), 11, 3)


def _nino(number: str) -> bool:
    prefix = number[:2]
    return (
        prefix[0] not in "DFIQUV"
        and prefix[1] not in "DFIOQUV"
        and prefix not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}
    )


def _british_vat(number: str) -> bool:
    digits = number[2:11]
    total = sum(int(char) * (8 - index) for index, char in enumerate(digits[:7])) + int(digits[7:])
    return total % 97 in {0, 42, 55}


def _british_licence(number: str) -> bool:
    month, day = int(number[6:8]) % 50, int(number[8:10])
    return is_day(month, day)


def _pps(number: str) -> bool:
    second = ord(number[8]) - 64 if len(number) > 8 and number[8] != "W" else 0  # noqa: PLR2004
    total = sum(int(char) * (8 - index) for index, char in enumerate(number[:7])) + 9 * second
    return number[7] == _PPS_LETTERS[total % 23]


def _swedish(number: str) -> bool:
    short = number[-10:]
    return date_at(0, "yymmdd", day_offsets=(0, 60))(short) and luhn(short)


def _norwegian(number: str) -> bool:
    day, month = int(number[:2]) % 40, int(number[2:4])
    return is_day(month % 40 if month < 60 else month - 65 if month < 80 else month - 80, day)  # noqa: PLR2004


def _hetu(number: str) -> bool:
    digits = number[:6] + number[-4:-1]
    return date_at(0, "ddmmyy")(number) and number[-1] == _HETU_LETTERS[int(digits) % 31]


def _baltic(number: str) -> bool:
    rest = 10
    for weights in _BALTIC_WEIGHTS:
        rest = sum(int(char) * weight for char, weight in zip(number, weights, strict=False)) % 11
        if rest < 10:  # noqa: PLR2004 - what one digit can say
            break
    return rest % 10 == int(number[-1])


def _latvian(number: str) -> bool:
    if number[0] == "3":  # since 2017, without a date or a check digit
        return number[1] in "23456789"
    return date_at(0, "ddmmyy")(number) and _LATVIAN_DIGIT(number)


def _latvian_dated(number: str) -> bool:
    return number[0] != "3" and _latvian(number)


def _lithuanian_company(number: str) -> bool:
    rest = 10
    for first in (0, 2):
        digits = enumerate(number[:-1], start=first)
        rest = sum(int(char) * (1 + index % 9) for index, char in digits) % 11
        if rest < 10:  # noqa: PLR2004 - what one digit can say
            break
    return number[-2] == "1" and rest % 10 == int(number[-1])


CHECKS: dict[str, Check] = {
    "gb nhs number": _NHS,
    "gb chi number": all_of(date_at(0, "ddmmyy"), _NHS),
    "gb national insurance number": _nino,
    "gb tax reference": check_character((6, 7, 8, 9, 10, 5, 4, 3, 2), "21987654321", at=0),
    "gb vat number": _british_vat,
    "gb driving licence": _british_licence,
    "ie pps number": _pps,
    "ie vat number": part(2, None, _pps),
    "se personnummer": _swedish,
    "se company number": luhn,
    "se vat number": lambda number: luhn(number[2:12]),
    "no fødselsnummer": all_of(part(0, 10, _NORWEGIAN_FIRST), _NORWEGIAN_SECOND, _norwegian),
    "no company number": _NORWEGIAN_COMPANY,
    "no account number": _NORWEGIAN_SECOND,
    "dk cpr number": date_at(0, "ddmmyy"),
    "dk cpr number 2": all_of(date_at(0, "ddmmyy"), _CPR_SUM),
    "dk company number": _CVR,
    "dk vat number": part(2, None, _CVR),
    "fi hetu": _hetu,
    "fi company number": _FINNISH_COMPANY,
    "fi vat number": part(2, None, _FINNISH_COMPANY),
    "is kennitala": all_of(date_at(0, "ddmmyy", day_offsets=(0, 40)), _KENNITALA),
    "ee isikukood": all_of(date_at(1, "yymmdd"), _baltic),
    "lv personas kods": _latvian,
    "lv personas kods 2": _latvian_dated,
    "ee vat number": part(2, None, weighted_sum((3, 7, 1, 3, 7, 1, 3, 7, 1), 10)),
    "lv vat number": part(
        2, None, any_of(all_of(lambda number: number[0] > "3", _LATVIAN_COMPANY), _latvian)
    ),
    "lt vat number": part(2, None, _lithuanian_company),
}
