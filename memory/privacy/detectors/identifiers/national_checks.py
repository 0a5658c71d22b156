"""Checks of national numbers that are like no other's; `check_digits` puts the others together."""

from __future__ import annotations

from collections import Counter

from .arithmetic import is_day, luhn, luhn_sum, mod_11_10, mod_97_10, verhoeff, weighted

__all__ = ["luhn", "mod_11_10", "mod_97_10", "verhoeff"]

_CODICE_ODD = "BAFHJNPRTVCESULDGIMOQKWZYX"
_CODICE_DIGITS = str.maketrans("LMNPQRSTUV", "0123456789")
_CREDIT_CODE = "0123456789ABCDEFGHJKLMNPQRTUWXY"
_TAIWANESE_LETTERS = "ABCDEFGHJKLMNPQRSTUVXYWZIO"
_NHI_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_NRIC_LETTERS = {"S": "JZIHGFEDCBA", "F": "XWUTRQPNMLK", "M": "XWUTRQPNJLK"}
_FROM_ELEVEN = "00987654321"
"""The check digit is eleven less the rest, and none of two digits."""


def any(_number: str) -> bool:  # noqa: A001 - as the table has it
    """Hold: beside its word whatever looks like it is one, a date too."""
    return True


def pl_account(number: str) -> bool:
    """Polish account: an IBAN without the letters of its country."""
    return mod_97_10(number[2:] + "PL" + number[:2])


def de_tax_id(number: str) -> bool:
    """German tax id: one digit is there twice or thrice, no other."""
    counts = Counter(number[:10]).most_common(2)
    repeated = counts[0][1] in {2, 3} and counts[1][1] == 1
    return number[0] != "0" and repeated and mod_11_10(number)


def at_vat(number: str) -> bool:
    """Austrian VAT number."""
    return (luhn_sum(number[:-1]) + int(number[-1])) % 10 == 6  # noqa: PLR2004 - the standard's own


def cz_birth(number: str) -> bool:
    """Czech and Slovak birth number: a date, and a check digit since 1954."""
    month = int(number[2:4]) % 50
    day = is_day(month % 20 if month > 12 else month, int(number[4:6]))  # noqa: PLR2004 - as above
    return day and (len(number) == 9 or int(number[:9]) % 11 % 10 == int(number[9]))  # noqa: PLR2004


def ie_pps(number: str) -> bool:
    """Irish PPS number, with one letter or two."""
    second = ord(number[8]) - 64 if number[8:] not in {"", "W"} else 0
    return (
        number[7]
        == "WABCDEFGHIJKLMNOPQRSTUV"[(weighted(number, range(8, 1, -1)) + 9 * second) % 23]
    )


def fi_hetu(number: str) -> bool:
    """Finnish personal identity code, whatever century its sign says."""
    return number[-1] == "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(number[:6] + number[-4:-1]) % 31]


def fr_nir(number: str) -> bool:
    """French social security number; Corsica has letters."""
    digits = number.replace("2A", "19", 1).replace("2B", "18", 1)
    if not digits.isdigit() or digits[0] not in "123478":
        return False
    month = int(digits[3:5])
    in_year = 1 <= month <= 12 or 20 <= month <= 42 or month >= 50  # noqa: PLR2004 - as above
    return in_year and 97 - int(digits[:13]) % 97 == int(digits[13:])


def fr_tax(number: str) -> bool:
    """French tax number: three digits that the others leave."""
    return number[0] in "0123" and int(number[:10]) % 511 == int(number[10:])


def fr_vat(number: str) -> bool:
    """French VAT number: a SIREN behind a key."""
    key, siren = number[2:4], number[4:]
    return luhn(siren) and key == f"{(12 + 3 * (int(siren) % 97)) % 97:02}"


def fr_account(number: str) -> bool:
    """French account: bank, branch, account and key."""
    bank, branch, account, key = number[:5], number[5:10], number[10:21], number[21:]
    return (89 * int(bank) + 15 * int(branch) + 3 * int(account) + int(key)) % 97 == 0


def be_national(number: str) -> bool:
    """Belgian national number; month and day are zero where they are not known."""
    body, key = int(number[:9]), int(number[9:])
    month, day = int(number[2:4]) % 20, int(number[4:6])
    checks = key in {97 - body % 97, 97 - (2_000_000_000 + body) % 97}
    return checks and month <= 12 and day <= 31  # noqa: PLR2004 - a year's


def be_company(number: str) -> bool:
    """Belgian company number."""
    return number[0] in "01" and 97 - int(number[:8]) % 97 == int(number[8:])


def be_card(number: str) -> bool:
    """Belgian identity card."""
    return int(number[:10]) % 97 == int(number[10:]) % 97


def lu_national(number: str) -> bool:
    """Luxembourg's national number: a digit of two algorithms each."""
    return luhn(number[:12]) and verhoeff(number[:11] + number[12])


def lu_vat(number: str) -> bool:
    """Luxembourg's VAT number."""
    return int(number[2:8]) % 89 == int(number[8:])


def es_dni(number: str) -> bool:
    """Spanish DNI: a letter for its rest."""
    return number[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[int(number[:-1]) % 23]


def es_nie(number: str) -> bool:
    """Spanish NIE: a DNI whose first digit is a letter."""
    return es_dni(str("XYZ".index(number[0])) + number[1:])


def es_cif(number: str) -> bool:
    """Spanish company number: its check digit may be a letter."""
    rest = -(luhn_sum(number[1:8] + "0")) % 10
    return number[-1] in {str(rest), "JABCDEFGHI"[rest]}


def es_social(number: str) -> bool:
    """Spanish social security number: province, person and their rest."""
    province, person = int(number[:2]), int(number[2:10])
    joined = province * 10_000_000 + person if person < 10_000_000 else int(number[:10])  # noqa: PLR2004
    return joined % 97 == int(number[10:])


def es_account(number: str) -> bool:
    """Spanish account: a check digit of the bank's numbers and one of the account."""

    def digit(part_of: str) -> str:
        return "01987654321"[weighted(part_of, (1, 2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11]

    return number[8:10] == digit("00" + number[:8]) + digit(number[10:])


def it_codice(number: str) -> bool:
    """Italian codice fiscale; digits may be letters, if two people would share one."""
    places = [int(char, 36) - 10 * char.isalpha() for char in number[:15]]
    total = sum(places[1::2]) + sum(ord(_CODICE_ODD[each]) - 65 for each in places[::2])
    day = number[9:11].translate(_CODICE_DIGITS)
    in_month = number[8] in "ABCDEHLMPRST" and day.isdigit() and int(day) % 40 in range(1, 32)
    return in_month and number[15] == chr(65 + total % 26)


def cy_tax(number: str) -> bool:
    """Cypriot tax number: its odd digits stand for others."""
    odd = sum((1, 0, 5, 7, 9, 13, 15, 17, 19, 21)[int(char)] for char in number[:8:2])
    return number[8] == chr(65 + (odd + sum(map(int, number[1:8:2]))) % 26)


def tr_citizen(number: str) -> bool:
    """Turkish citizen's number: two check digits."""
    digits = [int(char) for char in number]
    odd, even = sum(digits[0:9:2]), sum(digits[1:8:2])
    tenth, last = (odd * 7 - even) % 10, sum(digits[:10]) % 10
    return digits[0] != 0 and digits[9] == tenth and digits[10] == last


def tr_tax(number: str) -> bool:
    """Turkish tax number: each digit moved, and multiplied by a power of two."""
    total = 0
    for index, char in enumerate(number[:9]):
        moved = (int(char) + 9 - index) % 10
        total += (moved * 2 ** (9 - index) % 9 or 9) if moved else 0
    return (10 - total % 10) % 10 == int(number[9])


def ru_snils(number: str) -> bool:
    """Russian SNILS; the first ones have no check digits."""
    total = weighted(number, range(9, 0, -1))
    return number[:9] >= "001001998" and total % 101 % 100 == int(number[9:])


def ru_company(number: str) -> bool:
    """Russian OGRN, of a company or a sole trader."""
    return int(number[:-1]) % (len(number) - 2) % 10 == int(number[-1])


def mx_curp(number: str) -> bool:
    """Mexican CURP: its alphabet has an Ñ."""
    alphabet = "0123456789ABCDEFGHIJKLMN-OPQRSTUVWXYZ"
    total = sum(alphabet.index(char) * (18 - index) for index, char in enumerate(number[:17]))
    return number[17] == str(-total % 10)


def mx_rfc(number: str) -> bool:
    """Mexican RFC, of a person or a company, which is a character shorter."""
    alphabet = "0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ -"
    pairs = enumerate(number.rjust(13)[:12])
    total = sum(alphabet.index(char) * (13 - index) for index, char in pairs)
    month, day = int(number[-7:-5]), int(number[-5:-3])
    return is_day(month, day) and number[-1] == "0A987654321"[total % 11]


def br_company(number: str) -> bool:
    """Brazilian CNPJ; newer ones have letters."""
    values = [ord(char) - 48 for char in number]
    for length in (12, 13):
        weights = ((length - index - 1) % 8 + 2 for index in range(length))
        rest = sum(value * weight for value, weight in zip(values, weights, strict=False)) % 11
        if values[length] != int(_FROM_ELEVEN[rest]):
            return False
    return len(set(number)) > 1


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


def ve_rif(number: str) -> bool:
    """Venezuelan RIF: its letter counts four times what it stands for."""
    letter = {"V": 4, "E": 8, "J": 12, "P": 16, "G": 20, "C": 12}[number[0]]
    total = letter + weighted(number[1:], (3, 2, 7, 6, 5, 4, 3, 2))
    return number[-1] == _FROM_ELEVEN[total % 11]


def cn_credit_code(number: str) -> bool:
    """Chinese social credit code: powers of three."""
    if not set(number) <= set(_CREDIT_CODE):
        return False
    pairs = enumerate(number[:17])
    total = sum(_CREDIT_CODE.index(char) * pow(3, index, 31) for index, char in pairs)
    return number[17] == _CREDIT_CODE[-total % 31]


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


def in_gstin(number: str) -> bool:
    """Indian GSTIN: Luhn's algorithm in base 36."""
    products = (int(char, 36) * (1 + index % 2) for index, char in enumerate(number[:14]))
    return int(number[14], 36) == -sum(sum(divmod(each, 36)) for each in products) % 36


def sg_identity(number: str) -> bool:
    """Singapore's NRIC and FIN: a letter by the letter in front."""
    letters = _NRIC_LETTERS[{"T": "S", "G": "F"}.get(number[0], number[0])]
    total = weighted(number[1:], (2, 7, 6, 5, 4, 3, 2))
    return number[8] == letters[(total + {"T": 4, "G": 4, "M": 3}.get(number[0], 0)) % 11]


def nz_tax(number: str) -> bool:
    """New Zealand's IRD number: other weights where the first leave ten."""
    rests = (
        -weighted(number.zfill(9), each) % 11
        for each in ((3, 2, 7, 6, 5, 4, 3, 2), (7, 4, 3, 2, 5, 2, 7, 6))
    )
    rest = next((each for each in rests if each < 10), 10)  # noqa: PLR2004 - what one digit can say
    return 10_000_000 < int(number) < 150_000_000 and rest == int(number[-1])  # noqa: PLR2004


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
