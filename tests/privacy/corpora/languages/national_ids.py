"""Made-up national identifiers with the check digits of their country."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_HETU_LETTERS = "0123456789ABCDEFHJKLMNPRSTUVWXY"


def digits(rng: random.Random, count: int, *, first: str = "0123456789") -> str:
    """Digits, the first of which is one of some."""
    return rng.choice(first) + "".join(rng.choice("0123456789") for _ in range(count - 1))


def weighted(number: str, weights: Sequence[int]) -> int:
    """The sum of a number's digits, each times its weight."""
    return sum(int(digit) * weight for digit, weight in zip(number, weights, strict=True))


def luhn_digit(number: str) -> str:
    """The digit that completes a number by Luhn's formula."""
    total = 0
    for place, digit in enumerate(reversed(number)):
        doubled = int(digit) * (2 if place % 2 == 0 else 1)
        total += doubled - 9 if doubled > 9 else doubled
    return str(-total % 10)


def national_id(language: str, rng: random.Random) -> str:
    """A valid identifier of the country whose language it is, in one of its usual forms."""
    while True:
        made = rng.choice(_MAKERS[language])(rng)
        if made is not None:
            return made


def _birth(rng: random.Random) -> tuple[int, int, int]:
    return rng.randint(1940, 1999), rng.randint(1, 12), rng.randint(1, 28)


def _steuer_id(rng: random.Random) -> str:
    # Ten digits of which exactly one stands twice, and one of the others is missing.
    chosen = rng.sample("0123456789", 9)
    body = [*chosen, rng.choice(chosen)]
    rng.shuffle(body)
    if body[0] == "0":
        body[0], body[1] = body[1], body[0]
    if body[0] == "0":
        body.reverse()
    product = 10
    for digit in body:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    number = "".join(body) + str((11 - product) % 10)
    spaced = f"{number[:2]} {number[2:5]} {number[5:8]} {number[8:]}"
    return rng.choice((number, spaced))


def _nir(rng: random.Random) -> str:
    year, month, _ = _birth(rng)
    body = (
        f"{rng.choice('12')}{year % 100:02}{month:02}{rng.randint(1, 95):02}"
        f"{rng.randint(1, 400):03}{rng.randint(1, 400):03}"
    )
    if body[5:7] == "20":  # Corsica writes letters
        body = f"{body[:5]}75{body[7:]}"
    key = f"{97 - int(body) % 97:02}"
    spaced = f"{body[0]} {body[1:3]} {body[3:5]} {body[5:7]} {body[7:10]} {body[10:]} {key}"
    return rng.choice((body + key, spaced))


def _dni(rng: random.Random) -> str:
    number = digits(rng, 8, first="1234567")
    letter = _DNI_LETTERS[int(number) % 23]
    return rng.choice((number + letter, f"{number}-{letter}"))


def _nie(rng: random.Random) -> str:
    lead = rng.randrange(3)
    number = digits(rng, 7)
    return f"{'XYZ'[lead]}{number}{_DNI_LETTERS[int(f'{lead}{number}') % 23]}"


_ODD_PLACES = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (
            *(1, 0, 5, 7, 9, 13, 15, 17, 19, 21),
            *(1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20),
            *(11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        ),
        strict=True,
    )
)


def _codice_fiscale(rng: random.Random) -> str:
    year, month, day = _birth(rng)
    letters = "".join(rng.choice("BCDFGLMNPRSTV") for _ in range(6))
    woman = rng.choice((0, 40))
    body = (
        f"{letters}{year % 100:02}{'ABCDEHLMPRST'[month - 1]}{day + woman:02}"
        f"{rng.choice('ABCDEFGHL')}{rng.randint(101, 999)}"
    )
    total = sum(_ODD_PLACES[letter] for letter in body[::2]) + sum(
        int(letter) if letter.isdigit() else ord(letter) - ord("A") for letter in body[1::2]
    )
    return body + chr(ord("A") + total % 26)


def _nif(rng: random.Random) -> str:
    body = digits(rng, 8, first="123")
    check = 11 - weighted(body, range(9, 1, -1)) % 11
    number = body + str(0 if check > 9 else check)
    return rng.choice((number, f"{number[:3]} {number[3:6]} {number[6:]}"))


def _cpf(rng: random.Random) -> str:
    body = digits(rng, 9)
    for length in (10, 11):
        body += str(weighted(body, range(length, 1, -1)) * 10 % 11 % 10)
    return rng.choice((body, f"{body[:3]}.{body[3:6]}.{body[6:9]}-{body[9:]}"))


def _bsn(rng: random.Random) -> str | None:
    body = digits(rng, 8, first="123456789")
    check = weighted(body, range(9, 1, -1)) % 11
    return f"{body}{check}" if check < 10 else None


def _pesel(rng: random.Random) -> str:
    year, month, day = _birth(rng)
    body = f"{year % 100:02}{month:02}{day:02}{digits(rng, 4)}"
    return body + str(-weighted(body, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10)


def _rodne_cislo(rng: random.Random) -> str | None:
    year, month, day = _birth(rng)
    year = max(year, 1954)
    body = f"{year % 100:02}{month + rng.choice((0, 50)):02}{day:02}{digits(rng, 3)}"
    check = int(body) % 11
    if check == 10:
        return None
    return rng.choice((f"{body[:6]}/{body[6:]}{check}", f"{body}{check}"))


def _personnummer(rng: random.Random) -> str:
    year, month, day = _birth(rng)
    body = f"{year % 100:02}{month:02}{day:02}{digits(rng, 3)}"
    check = luhn_digit(body)
    century = rng.choice(("", str(year // 100)))
    return f"{century}{body[:6]}-{body[6:]}{check}"


def _cpr(rng: random.Random) -> str | None:
    year, month, day = _birth(rng)
    body = f"{day:02}{month:02}{year % 100:02}{digits(rng, 3, first='0123')}"
    check = -weighted(body, (4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return f"{body[:6]}-{body[6:]}{check}" if check < 10 else None


def _hetu(rng: random.Random) -> str:
    year, month, day = _birth(rng)
    birth, serial = f"{day:02}{month:02}{year % 100:02}", f"{rng.randint(2, 899):03}"
    return f"{birth}-{serial}{_HETU_LETTERS[int(birth + serial) % 31]}"


def _tc_kimlik(rng: random.Random) -> str:
    body = digits(rng, 9, first="123456789")
    tenth = (sum(map(int, body[::2])) * 7 - sum(map(int, body[1::2]))) % 10
    return f"{body}{tenth}{(sum(map(int, body)) + tenth) % 10}"


def _afm(rng: random.Random) -> str:
    body = digits(rng, 8, first="01")
    return body + str(weighted(body, [2**power for power in range(8, 0, -1)]) % 11 % 10)


def _amka(rng: random.Random) -> str:
    year, month, day = _birth(rng)
    body = f"{day:02}{month:02}{year % 100:02}{digits(rng, 4)}"
    return body + luhn_digit(body)


def _inn(rng: random.Random) -> str:
    body = digits(rng, 10, first="123456789")
    body += str(weighted(body, (7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10)
    return body + str(weighted(body, (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10)


def _snils(rng: random.Random) -> str:
    body = digits(rng, 9, first="123456789")
    check = weighted(body, range(9, 0, -1)) % 101 % 100
    return f"{body[:3]}-{body[3:6]}-{body[6:]} {check:02}"


def _rnokpp(rng: random.Random) -> str:
    body = digits(rng, 9, first="123")
    return body + str(weighted(body, (-1, 5, 7, 9, 4, 6, 10, 5, 7)) % 11 % 10)


def _teudat_zehut(rng: random.Random) -> str:
    body = digits(rng, 8, first="0123")
    return body + luhn_digit(body)


def _saudi_id(rng: random.Random) -> str:
    body = digits(rng, 9, first="12")
    return body + luhn_digit(body)


def _emirates_id(rng: random.Random) -> str:
    body = f"784{_birth(rng)[0]}{digits(rng, 7)}"
    return f"784-{body[3:7]}-{body[7:]}-{luhn_digit(body)}"


def _code_melli(rng: random.Random) -> str:
    body = digits(rng, 9)
    remainder = weighted(body, range(10, 1, -1)) % 11
    return body + str(remainder if remainder < 2 else 11 - remainder)


_D5 = tuple(
    tuple(
        (row + column) % 5 + 5 * (column >= 5)
        if row < 5
        else (row - column) % 5 + (5 if column < 5 else 0)
        for column in range(10)
    )
    for row in range(10)
)
_PERMUTATION = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


def _aadhaar(rng: random.Random) -> str:
    body = digits(rng, 11, first="23456789")
    state = 0
    for place, digit in enumerate(reversed(body), start=1):
        moved = int(digit)
        for _ in range(place % 8):
            moved = _PERMUTATION[moved]
        state = _D5[state][moved]
    number = f"{body}{_D5[state].index(0)}"
    return f"{number[:4]} {number[4:8]} {number[8:]}"


def _thai_id(rng: random.Random) -> str:
    body = digits(rng, 12, first="12345678")
    number = body + str((11 - weighted(body, range(13, 1, -1)) % 11) % 10)
    dashed = f"{number[0]}-{number[1:5]}-{number[5:10]}-{number[10:12]}-{number[12]}"
    return rng.choice((number, dashed))


def _resident_id(rng: random.Random) -> str:
    year, month, day = _birth(rng)
    region = rng.choice(("110101", "310104", "440305", "330106", "510107", "320102", "420106"))
    body = f"{region}{year}{month:02}{day:02}{digits(rng, 3)}"
    total = weighted(body, [2**power % 11 for power in range(17, 0, -1)])
    return body + "10X98765432"[total % 11]


def _my_number(rng: random.Random) -> str:
    body = digits(rng, 11)
    remainder = weighted(body, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    number = body + str(0 if remainder <= 1 else 11 - remainder)
    return rng.choice((number, f"{number[:4]} {number[4:8]} {number[8:]}"))


def _jumin(rng: random.Random) -> str:
    year, month, day = _birth(rng)
    body = f"{year % 100:02}{month:02}{day:02}{digits(rng, 6, first='12')}"
    check = (11 - weighted(body, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10
    return f"{body[:6]}-{body[6:]}{check}"


def _can_cuoc(rng: random.Random) -> str:
    # It has no check digit: province, sex and century, year, serial number.
    province = rng.choice(("001", "031", "048", "079", "092", "036", "038", "040"))
    return f"{province}{rng.choice('01')}{_birth(rng)[0] % 100:02}{digits(rng, 6)}"


def _nhs_number(rng: random.Random) -> str | None:
    body = digits(rng, 9, first="4567")
    check = -weighted(body, range(10, 1, -1)) % 11
    number = f"{body}{check}"
    return f"{number[:3]} {number[3:6]} {number[6:]}" if check < 10 else None


def _social_insurance_number(rng: random.Random) -> str:
    body = digits(rng, 8, first="124567")
    number = body + luhn_digit(body)
    return f"{number[:3]} {number[3:6]} {number[6:]}"


_MAKERS: dict[str, tuple[Callable[[random.Random], str | None], ...]] = {
    "ar": (_saudi_id, _emirates_id),
    "cs": (_rodne_cislo,),
    "da": (_cpr,),
    "de": (_steuer_id,),
    "el": (_afm, _amka),
    "en": (_nhs_number, _social_insurance_number),
    "es": (_dni, _nie),
    "fa": (_code_melli,),
    "fi": (_hetu,),
    "fr": (_nir,),
    "he": (_teudat_zehut,),
    "hi": (_aadhaar,),
    "it": (_codice_fiscale,),
    "ja": (_my_number,),
    "ko": (_jumin,),
    "nl": (_bsn,),
    "pl": (_pesel,),
    "pt": (_nif, _cpf),
    "ru": (_inn, _snils),
    "sv": (_personnummer,),
    "th": (_thai_id,),
    "tr": (_tc_kimlik,),
    "uk": (_rnokpp,),
    "vi": (_can_cuoc,),
    "zh": (_resident_id,),
}
