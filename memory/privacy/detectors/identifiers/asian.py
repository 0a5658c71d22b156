"""Numbers of people and sole traders in Asia east of Iran, Australia and New Zealand."""

from __future__ import annotations

from .check_digits import (
    Check,
    all_of,
    check_character,
    date_at,
    luhn,
    part,
    verhoeff,
    weighted_sum,
)

_BASE_36 = 36
_CHINESE_PROVINCES = frozenset(
    [
        "11",
        "12",
        "13",
        "14",
        "15",
        "21",
        "22",
        "23",
        "31",
        "32",
        "33",
        "34",
        "35",
        "36",
        "37",
        "41",
        "42",
        "43",
        "44",
        "45",
        "46",
        "50",
        "51",
        "52",
        "53",
        "54",
        "61",
        "62",
        "63",
        "64",
        "65",
        "71",
        "81",
        "82",
        "83",
    ]
)
_CHINESE_DIGIT = check_character(
    (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2), "10X98765432"
)
_CREDIT_CODE = "0123456789ABCDEFGHJKLMNPQRTUWXY"
_TAIWANESE_LETTERS = "ABCDEFGHJKLMNPQRSTUVXYWZIO"
_NHI_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_NRIC_LETTERS = {"S": "JZIHGFEDCBA", "F": "XWUTRQPNMLK", "M": "XWUTRQPNJLK"}
_MALAYSIAN_UNUSED = {0, 17, 18, 19, 20, *range(69, 71), 73, 80, 81, *range(94, 98)}
_IRD_WEIGHTS = (3, 2, 7, 6, 5, 4, 3, 2), (7, 4, 3, 2, 5, 2, 7, 6)


def _chinese(number: str) -> bool:
    known = number[:2] in _CHINESE_PROVINCES and date_at(6, "yyyymmdd")(number)
    return known and _CHINESE_DIGIT(number)


def _credit_code(number: str) -> bool:
    if any(char not in _CREDIT_CODE for char in number):
        return False
    pairs = enumerate(number[:17])
    total = sum(_CREDIT_CODE.index(char) * pow(3, index, 31) for index, char in pairs)
    return number[17] == _CREDIT_CODE[-total % 31]


def _taiwanese(number: str) -> bool:
    first = _TAIWANESE_LETTERS.index(number[0]) + 10
    second = int(number[1]) if number[1].isdigit() else _TAIWANESE_LETTERS.index(number[1]) % 10
    digits = [second, *map(int, number[2:])]
    total = first // 10 + first % 10 * 9 + digits[8]
    total += sum(digit * (8 - index) for index, digit in enumerate(digits[:8]))
    return total % 10 == 0


def _ubn(number: str) -> bool:
    products = (
        int(char) * weight for char, weight in zip(number, (1, 2, 1, 2, 1, 2, 4, 1), strict=True)
    )
    total = sum(sum(divmod(product, 10)) for product in products)
    return total % 5 == 0 or (number[6] == "7" and (total + 1) % 5 == 0)


def _hong_kong(number: str) -> bool:
    letters = number[:-7].rjust(2)
    values = [36 if char == " " else int(char, 36) for char in letters + number[-7:-1]]
    total = sum(value * (9 - index) for index, value in enumerate(values))
    return number[-1] == "0123456789A"[-total % 11]


def _japanese_company(number: str) -> bool:
    total = sum(int(char) * (1 + index % 2) for index, char in enumerate(reversed(number[1:])))
    return int(number[0]) == 9 - total % 9


_KOREAN_DATE = all_of(lambda number: number[6] in "12345678", date_at(0, "yymmdd"))


def _korean_company(number: str) -> bool:
    weights = (1, 3, 7, 1, 3, 7, 1, 3, 5)
    total = sum(int(char) * weight for char, weight in zip(number, weights, strict=False))
    return -(total + int(number[8]) * 5 // 10) % 10 == int(number[9])


def _gstin(number: str) -> bool:
    total = 0
    for index, char in enumerate(number[:14]):
        product = int(char, _BASE_36) * (1 + index % 2)
        total += product // _BASE_36 + product % _BASE_36
    return int(number[14], _BASE_36) == -total % _BASE_36


def _nik(number: str) -> bool:
    return number[0] != "0" and date_at(6, "ddmmyy", day_offsets=(0, 40))(number)


def _malaysian(number: str) -> bool:
    return date_at(0, "yymmdd")(number) and int(number[6:8]) not in _MALAYSIAN_UNUSED


def _nric(number: str) -> bool:
    offset = {"S": 0, "F": 0, "T": 4, "G": 4, "M": 3}[number[0]]
    letters = _NRIC_LETTERS[{"T": "S", "G": "F"}.get(number[0], number[0])]
    weights = (2, 7, 6, 5, 4, 3, 2)
    total = sum(int(char) * weight for char, weight in zip(number[1:], weights, strict=False))
    return number[8] == letters[(total + offset) % 11]


def _is_four_years(number: str) -> bool:
    return all(number[start : start + 2] in {"19", "20"} for start in (0, 4, 8))


_AADHAAR = all_of(lambda number: number[0] in "23456789" and not _is_four_years(number), verhoeff)
_TFN = weighted_sum((1, 4, 3, 7, 5, 8, 6, 9, 10), 11)
_MEDICARE = check_character((1, 3, 7, 9, 1, 3, 7, 9), "0123456789", at=8)


def _abn(number: str) -> bool:
    less = str(int(number[0]) - 1) + number[1:] if number[0] != "0" else "0"
    return len(less) == 11 and weighted_sum((10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19), 89)(less)  # noqa: PLR2004


def _ird(number: str) -> bool:
    padded = number.zfill(9)
    rest = 10
    for weights in _IRD_WEIGHTS:
        rest = -sum(int(char) * weight for char, weight in zip(padded, weights, strict=False)) % 11
        if rest < 10:  # noqa: PLR2004 - what one digit can say
            break
    return 10_000_000 < int(number) < 150_000_000 and rest == int(padded[8])  # noqa: PLR2004


def _nhi(number: str) -> bool:
    if any(char in "IO" for char in number):
        return False
    values = [_NHI_LETTERS.index(char) + 1 if char.isalpha() else int(char) for char in number]
    total = sum(value * (7 - index) for index, value in enumerate(values[:6]))
    if number[-1].isalpha():
        return values[6] == 24 - total % 24
    return number[6] == "-0987654321"[total % 11]


CHECKS: dict[str, Check] = {
    "cn resident identity number": _chinese,
    "cn resident identity number 2": date_at(6, "yymmdd"),
    "cn social credit code": _credit_code,
    "tw identity number": _taiwanese,
    "tw business number": _ubn,
    "hk identity card": _hong_kong,
    "jp my number": check_character((6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), "00987654321"),
    "jp company number": _japanese_company,
    "kr resident registration number": _KOREAN_DATE,
    "kr business number": _korean_company,
    "in aadhaar": _AADHAAR,
    "in gstin": _gstin,
    "id citizen number": _nik,
    "id npwp": part(0, 9, luhn),
    "my mykad": _malaysian,
    "sg nric/fin": _nric,
    "th national id": all_of(
        lambda number: number[0] in "12345678", check_character(range(13, 1, -1), "10987654321")
    ),
    "vn tax number": part(0, 10, check_character((31, 29, 23, 19, 17, 13, 7, 5, 3), "-9876543210")),
    "au tfn": _TFN,
    "au medicare number": _MEDICARE,
    "au abn": _abn,
    "au acn": check_character(range(8, 0, -1), "0987654321"),
    "nz ird number": _ird,
    "nz nhi number": _nhi,
}
