"""Checks of national numbers that python-stdnum lacks; `check_digits` puts the others together."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable

from stdnum.iso7064.mod_97_10 import is_valid as mod_97_10
from stdnum.luhn import is_valid as luhn
from stdnum.verhoeff import is_valid as verhoeff

_TAIWANESE_LETTERS = "ABCDEFGHJKLMNPQRSTUVXYWZIO"
_NHI_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_NRIC_LETTERS = {"S": "JZIHGFEDCBA", "F": "XWUTRQPNMLK", "M": "XWUTRQPNJLK"}


def weighted(number: str, weights: Iterable[int]) -> int:
    """Return the sum of the characters of *number*, weighted; A is 10, Z 35."""
    return sum(int(char, 36) * weight for char, weight in zip(number, weights, strict=False))


def is_day(month: int, day: int) -> bool:
    """Return whether there is such a day in a leap year."""
    return 1 <= month <= 12 and 1 <= day <= monthrange(2000, month)[1]  # noqa: PLR2004 - a year's


def any(_number: str) -> bool:  # noqa: A001 - as the table has it
    """Hold: beside its word whatever looks like it is one, a date too."""
    return True


def pl_account(number: str) -> bool:
    """Polish account: an IBAN without the letters of its country."""
    return mod_97_10(number[2:] + "PL" + number[:2])


def fi_hetu(number: str) -> bool:
    """Finnish personal identity code, whatever century its sign says."""
    return number[-1] == "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(number[:6] + number[-4:-1]) % 31]


def fr_account(number: str) -> bool:
    """French account: bank, branch, account and key."""
    bank, branch, account, key = number[:5], number[5:10], number[10:21], number[21:]
    return (89 * int(bank) + 15 * int(branch) + 3 * int(account) + int(key)) % 97 == 0


def lu_national(number: str) -> bool:
    """Luxembourg's national number: a digit of two algorithms each."""
    return luhn(number[:12]) and verhoeff(number[:11] + number[12])


def es_social(number: str) -> bool:
    """Spanish social security number: province, person and their rest."""
    province, person = int(number[:2]), int(number[2:10])
    joined = province * 10_000_000 + person if person < 10_000_000 else int(number[:10])  # noqa: PLR2004
    return joined % 97 == int(number[10:])


def ru_snils(number: str) -> bool:
    """Russian SNILS; the first ones have no check digits."""
    total = weighted(number, range(9, 0, -1))
    return number[:9] >= "001001998" and total % 101 % 100 == int(number[9:])


def mx_rfc(number: str) -> bool:
    """Mexican RFC, of a person or a company, which is a character shorter."""
    alphabet = "0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ -"
    pairs = enumerate(number.rjust(13)[:12])
    total = sum(alphabet.index(char) * (13 - index) for index, char in pairs)
    month, day = int(number[-7:-5]), int(number[-5:-3])
    return is_day(month, day) and number[-1] == "0A987654321"[total % 11]


def kz_number(number: str) -> bool:
    """Kazakh IIN or BIN: other weights where the first leave ten."""
    rest = weighted(number, range(1, 12)) % 11
    rest = weighted(number, (*range(3, 12), 1, 2)) % 11 if rest == 10 else rest  # noqa: PLR2004
    return number[11] == str(rest)


def br_licence(number: str) -> bool:
    """Brazilian driving licence: the second check digit is less where the first overflows."""
    first = weighted(number, range(9, 0, -1)) % 11
    second = weighted(number, range(1, 10)) % 11 - (2 if first == 10 else 0)  # noqa: PLR2004
    second = second + 11 if second < 0 else second
    both = f"{first % 10}{0 if second > 9 else second}"  # noqa: PLR2004 - what one digit can say
    return len(set(number)) > 1 and number[9:] == both


def br_voter(number: str) -> bool:
    """Brazilian voter's number: two states have a one for a zero."""
    state = int(number[8:10])
    first = weighted(number, range(2, 10)) % 11 % 10
    second = weighted(number[8:11], (7, 8, 9)) % 11 % 10
    firsts, seconds = (
        {each, 1} if state in {1, 2} and each == 0 else {each} for each in (first, second)
    )
    return 1 <= state <= 28 and int(number[10]) in firsts and int(number[11]) in seconds  # noqa: PLR2004


def tw_identity(number: str) -> bool:
    """Taiwanese identity number: a letter for a place, and a second one for residents."""
    first = _TAIWANESE_LETTERS.index(number[0]) + 10
    second = number[1] if number[1].isdigit() else str(_TAIWANESE_LETTERS.index(number[1]) % 10)
    digits = second + number[2:]
    total = first // 10 + first % 10 * 9 + weighted(digits, (*range(8, 0, -1), 1))
    return total % 10 == 0


def tw_business(number: str) -> bool:
    """Taiwanese business number: its seventh digit may count one more."""
    products = (
        int(char) * weight for char, weight in zip(number, (1, 2, 1, 2, 1, 2, 4, 1), strict=True)
    )
    total = sum(sum(divmod(product, 10)) for product in products)
    return total % 5 == 0 or (number[6] == "7" and (total + 1) % 5 == 0)


def hk_identity(number: str) -> bool:
    """Hong Kong identity card, with one letter or two."""
    letters = number[:-7].rjust(2)
    values = [36 if char == " " else int(char, 36) for char in letters + number[-7:-1]]
    total = sum(value * (9 - index) for index, value in enumerate(values))
    return number[-1] == "0123456789A"[-total % 11]


def kr_business(number: str) -> bool:
    """Korean business number: its ninth digit counts five times, and its tens again."""
    total = weighted(number, (1, 3, 7, 1, 3, 7, 1, 3, 5))
    return -(total + int(number[8]) * 5 // 10) % 10 == int(number[9])


def sg_identity(number: str) -> bool:
    """Singapore's NRIC and FIN: a letter by the letter in front."""
    letters = _NRIC_LETTERS[{"T": "S", "G": "F"}.get(number[0], number[0])]
    total = weighted(number[1:], (2, 7, 6, 5, 4, 3, 2))
    return number[8] == letters[(total + {"T": 4, "G": 4, "M": 3}.get(number[0], 0)) % 11]


def nz_health(number: str) -> bool:
    """New Zealand's NHI number; newer ones end with a letter."""
    if not set("IO").isdisjoint(number):
        return False
    values = [_NHI_LETTERS.index(char) + 1 if char.isalpha() else int(char) for char in number]
    total = sum(value * (7 - index) for index, value in enumerate(values[:6]))
    if number[-1].isalpha():
        return values[6] == 24 - total % 24
    return number[6] == "-0987654321"[total % 11]


def us_npi(number: str) -> bool:
    """National provider identifier of the US: a card's number behind five digits."""
    return luhn("80840" + number)
