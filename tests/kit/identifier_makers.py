"""
Makers of valid made-up identifiers, written without a look at what finds them.

Each says what its number is called in the texts of its country, and whether it is found bare.
"""

from __future__ import annotations

import hashlib
import random
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

DIGITS, LETTERS = string.digits, string.ascii_uppercase


@dataclass(frozen=True, slots=True)
class Maker:
    """
    A maker of one kind of identifier.

    Attributes:
        country: Its country.
        label: What texts call it.
        make: Makes one.
        is_found_bare: Whether it has to be found without a word.
        has_check: Whether another last digit makes it invalid.
    """

    country: str
    label: str
    make: Callable[[random.Random], str]
    is_found_bare: bool = False
    has_check: bool = True

    def __str__(self) -> str:
        """Name the test."""
        return f"{self.country} {self.label}"


def digits(rng: random.Random, count: int, first: str = DIGITS) -> str:
    """Return *count* digits, of which the first is one of *first*."""
    return rng.choice(first) + "".join(rng.choice(DIGITS) for _ in range(count - 1))


def letters(rng: random.Random, count: int, of: str = LETTERS) -> str:
    """Return *count* letters."""
    return "".join(rng.choice(of) for _ in range(count))


def date(rng: random.Random, form: str) -> str:
    """Return the date of a birth between 1940 and 1988."""
    year, month, day = rng.randint(1940, 1988), rng.randint(1, 12), rng.randint(1, 28)
    parts = {"yyyy": f"{year}", "yy": f"{year % 100:02}", "mm": f"{month:02}", "dd": f"{day:02}"}
    for name, value in parts.items():
        form = form.replace(name, value)
    return form


def until(make: Callable[[], str], holds: Callable[[str], bool]) -> str:
    """Return the first of what *make* makes that is right."""
    while not holds(made := make()):
        pass
    return made


def dot(number: str, weights: Sequence[int]) -> int:
    """Return the weighted sum of digits; letters count from ten."""
    return sum(int(char, 36) * weight for char, weight in zip(number, weights, strict=False))


def luhn_digit(payload: str) -> str:
    """Return the digit that ends a number of Luhn's."""
    total = 0
    for place, char in enumerate(payload[::-1]):
        value = int(char)
        if place % 2 == 0:
            value = value * 2 if value < 5 else value * 2 - 9
        total += value
    return str((10 - total % 10) % 10)


def eleven_ten_digit(payload: str) -> str:
    """Return the digit that ends a number of ISO 7064 MOD 11,10."""
    product = 10
    for char in payload:
        total = (int(char) + product) % 10
        product = (2 * (total or 10)) % 11
    return str((11 - product) % 10)


def verhoeff_digit(payload: str) -> str:
    """Return the digit that ends a number of Verhoeff's, by the dihedral group of order ten."""

    def multiply(a: int, b: int) -> int:
        if a < 5:
            return (a + b) % 5 if b < 5 else 5 + (a + b - 5) % 5
        return 5 + (a - 5 - b) % 5 if b < 5 else (a - b) % 5

    def permute(times: int, value: int) -> int:
        for _ in range(times):
            value = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)[value]
        return value

    total = 0
    for place, char in enumerate(payload[::-1], start=1):
        total = multiply(total, permute(place % 8, int(char)))
    return str(next(value for value in range(10) if multiply(value, total) == 0))


def summed(
    payload: Callable[[random.Random], str],
    weights: Sequence[int],
    digit: Callable[[int], int | str],
    form: str = "",
) -> Callable[[random.Random], str]:
    """Return a maker of numbers that end with a digit of their weighted sum, where it is one."""

    def make(rng: random.Random) -> str:
        def one() -> str:
            body = payload(rng)
            return body + str(digit(dot(body, weights)))

        made = until(one, lambda number: len(number) == len(payload(rng)) + 1)
        return grouped(made, form)

    return make


def grouped(number: str, form: str) -> str:
    """Return *number* in groups: each ``9`` of *form* is one of its characters."""
    if not form:
        return number
    rest = iter(number)
    return "".join(next(rest) if char == "9" else char for char in form)


def from_eleven(total: int) -> int:
    """Return eleven less the rest, or nothing where that has two digits."""
    rest = 11 - total % 11
    return 0 if rest > 9 else rest


def strict_eleven(total: int) -> int:
    """Return eleven less the rest, ten where there is no such number."""
    return (11 - total % 11) % 11


def _pesel(rng: random.Random) -> str:
    body = date(rng, "yymmdd") + digits(rng, 4)
    return body + str((10 - dot(body, (1, 3, 7, 9) * 3) % 10) % 10)


def _steuer_id(rng: random.Random) -> str:
    def body() -> str:
        nine = rng.sample(DIGITS, 9)
        nine.insert(rng.randrange(10), rng.choice(nine))
        return "".join(nine)

    ten = until(body, lambda number: number[0] != "0")
    return ten + eleven_ten_digit(ten)


def _nir(rng: random.Random) -> str:
    body = rng.choice("12") + date(rng, "yymm") + f"{rng.randint(1, 95):02}" + digits(rng, 6)
    return grouped(body + f"{97 - int(body) % 97:02}", "9 99 99 99 999 999 99")


def _belgian(rng: random.Random) -> str:
    body = date(rng, "yymmdd") + f"{rng.randint(1, 997):03}"
    return grouped(body + f"{97 - int(body) % 97:02}", "99.99.99-999.99")


def _bsn(rng: random.Random) -> str:
    return until(
        lambda: digits(rng, 9, "12345678"),
        lambda number: (dot(number[:8], range(9, 1, -1)) - int(number[8])) % 11 == 0,
    )


def _dni(rng: random.Random) -> str:
    number = digits(rng, 8)
    return number + "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23]


def _codice(rng: random.Random) -> str:
    odd = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25]
    odd += [24, 23]
    consonants = "BCDFGLMNPRSTVZ"
    body = (
        letters(rng, 6, consonants)
        + date(rng, "yy")
        + rng.choice("ABCDEHLMPRST")
        + f"{rng.randint(1, 28) + rng.choice((0, 40)):02}"
        + rng.choice("ABCDEFGHIL")
        + digits(rng, 3)
    )
    total = 0
    for place, char in enumerate(body, start=1):
        value = ord(char) - 65 if char.isalpha() else int(char)
        total += odd[value] if place % 2 else value
    return body + chr(65 + total % 26)


def _fodselsnummer(rng: random.Random) -> str:
    def one() -> str:
        body = date(rng, "ddmmyy") + digits(rng, 3, "01234")
        first = strict_eleven(dot(body, (3, 7, 6, 1, 8, 9, 4, 5, 2)))
        second = strict_eleven(dot(body, (5, 4, 3, 2, 7, 6, 5, 4, 3)) + 2 * first)
        return f"{body}{first}{second}"

    return until(one, lambda number: len(number) == 11)


def _cpr(rng: random.Random) -> str:
    number = until(
        lambda: date(rng, "ddmmyy") + digits(rng, 4),
        lambda each: dot(each, (4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0 and each[6] > "5",
    )
    return grouped(number, "999999-9999")


def _hetu(rng: random.Random) -> str:
    day, person = date(rng, "ddmmyy"), f"{rng.randint(2, 899):03}"
    return f"{day}-{person}" + "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(day + person) % 31]


def _baltic(rng: random.Random) -> str:
    body = rng.choice("34") + date(rng, "yymmdd") + digits(rng, 3)
    rest = dot(body, (1, 2, 3, 4, 5, 6, 7, 8, 9, 1)) % 11
    if rest == 10:
        rest = dot(body, (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)) % 11
    return body + str(rest % 10)


def _rodne(rng: random.Random) -> str:
    number = until(
        lambda: date(rng, "yymmdd") + digits(rng, 4),
        lambda each: int(each) % 11 == 0 and each[:2] > "53",
    )
    return grouped(number, "999999/9999")


def _tckn(rng: random.Random) -> str:
    nine = [int(char) for char in digits(rng, 9, "123456789")]
    tenth = (7 * sum(nine[::2]) - sum(nine[1::2])) % 10
    return "".join(map(str, nine)) + str(tenth) + str((sum(nine) + tenth) % 10)


def _inn(rng: random.Random) -> str:
    body = digits(rng, 10, "123456789")
    body += str(dot(body, (7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10)
    return body + str(dot(body, (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10)


def _snils(rng: random.Random) -> str:
    body = digits(rng, 9, "123456789")
    rest = dot(body, range(9, 0, -1)) % 101
    return grouped(f"{body}{0 if rest == 100 else rest:02}", "999-999-999 99")


def _iin(rng: random.Random) -> str:
    body = date(rng, "yymmdd") + digits(rng, 5, "34")
    rest = dot(body, range(1, 12)) % 11
    if rest == 10:
        rest = dot(body, (3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2)) % 11
    return f"{body}{rest}" if rest < 10 else _iin(rng)


def _cpf(rng: random.Random) -> str:
    body = digits(rng, 9)
    for _ in range(2):
        body += str(from_eleven(dot(body, range(len(body) + 1, 1, -1))))
    return grouped(body, "999.999.999-99")


def _cnpj(rng: random.Random) -> str:
    body = digits(rng, 8) + "0001"
    body += str(from_eleven(dot(body, (5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2))))
    body += str(from_eleven(dot(body, (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2))))
    return grouped(body, "99.999.999/9999-99")


def _cuit(rng: random.Random) -> str:
    def one() -> str:
        body = rng.choice(("20", "27")) + digits(rng, 8)
        return body + str(strict_eleven(dot(body, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2))))

    return grouped(until(one, lambda number: len(number) == 11), "99-99999999-9")


def _rut(rng: random.Random) -> str:
    body = digits(rng, 8, "12")
    rest = 11 - dot(body, (3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return grouped(body, "99.999.999") + "-" + {11: "0", 10: "K"}.get(rest, str(rest))


def _curp(rng: random.Random) -> str:
    alphabet = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"
    body = letters(rng, 4, "BCDFGH") + date(rng, "yymmdd") + rng.choice("HM")
    body += rng.choice(("DF", "JC", "NL")) + letters(rng, 3, "BCDFGLMN") + "0"
    total = sum(alphabet.index(char) * (18 - place) for place, char in enumerate(body))
    return body + str((10 - total % 10) % 10)


def _chinese(rng: random.Random) -> str:
    body = rng.choice(("110101", "310104", "440305")) + date(rng, "yyyymmdd") + digits(rng, 3)
    # The standard's own words: the sum of digits times powers of two is 1 modulo 11.
    total = sum(int(char) * 2 ** (17 - place) for place, char in enumerate(body))
    rest = (1 - total) % 11
    return body + ("X" if rest == 10 else str(rest))


def _my_number(rng: random.Random) -> str:
    body = digits(rng, 11)
    total = sum(
        int(char) * (place + 1 if place <= 6 else place - 5)
        for place, char in enumerate(body[::-1], start=1)
    )
    rest = total % 11
    return body + str(0 if rest <= 1 else 11 - rest)


def _taiwanese(rng: random.Random) -> str:
    codes = dict(zip("ABCDEFGHJKLMNPQRSTUVXYWZIO", range(10, 36), strict=True))
    body = rng.choice("ABCDEF") + rng.choice("12") + digits(rng, 7)
    expanded = str(codes[body[0]]) + body[1:]
    return body + str(-dot(expanded, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1)) % 10)


def _hong_kong(rng: random.Random) -> str:
    body = rng.choice(LETTERS) + digits(rng, 6)
    rest = -(36 * 9 + dot(body, range(8, 1, -1))) % 11
    return f"{body}({'A' if rest == 10 else rest})"


def _nric(rng: random.Random) -> str:
    body = rng.choice("ST") + digits(rng, 7)
    total = dot(body[1:], (2, 7, 6, 5, 4, 3, 2)) + (4 if body[0] == "T" else 0)
    return body + "JZIHGFEDCBA"[total % 11]


def _aadhaar(rng: random.Random) -> str:
    body = digits(rng, 11, "3456789")
    return grouped(body + verhoeff_digit(body), "9999 9999 9999")


def _abn(rng: random.Random) -> str:
    weights = (10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
    return until(
        lambda: digits(rng, 11, "123456789"),
        lambda number: (dot(number, weights) - 10) % 89 == 0,
    )


def _tfn(rng: random.Random) -> str:
    weights = (1, 4, 3, 7, 5, 8, 6, 9, 10)
    return until(lambda: digits(rng, 9, "123456789"), lambda number: dot(number, weights) % 11 == 0)


def _ird(rng: random.Random) -> str:
    def one() -> str:
        body = "0" + digits(rng, 7, "5678")
        rest = -dot(body, (3, 2, 7, 6, 5, 4, 3, 2)) % 11
        return body[1:] + str(rest)

    return grouped(until(one, lambda number: len(number) == 8), "99-999-999")


def _south_african(rng: random.Random) -> str:
    body = date(rng, "yymmdd") + digits(rng, 4) + "08"
    return body + luhn_digit(body)


def _emirates(rng: random.Random) -> str:
    body = "784" + date(rng, "yyyy") + digits(rng, 7)
    return grouped(body + luhn_digit(body), "999-9999-9999999-9")


def _with_luhn(
    count: int, first: str = "123456789", form: str = ""
) -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        body = digits(rng, count - 1, first)
        return grouped(body + luhn_digit(body), form)

    return make


def _oib(rng: random.Random) -> str:
    body = digits(rng, 10, "123456789")
    return body + eleven_ten_digit(body)


def _personnummer(rng: random.Random) -> str:
    body = date(rng, "yymmdd") + digits(rng, 3)
    return grouped(body + luhn_digit(body), "999999-9999")


def _iranian(rng: random.Random) -> str:
    body = digits(rng, 9, "123456789")
    rest = dot(body, range(10, 1, -1)) % 11
    return body + str(rest if rest < 2 else 11 - rest)


def _jmbg(rng: random.Random) -> str:
    def one() -> str:
        body = date(rng, "ddmm") + f"9{rng.randint(40, 88)}" + digits(rng, 5, "78")
        return body + str(strict_eleven(dot(body, (7, 6, 5, 4, 3, 2) * 2)))

    return until(one, lambda number: len(number) == 13)


def _pps(rng: random.Random) -> str:
    body = digits(rng, 7)
    return body + "WABCDEFGHIJKLMNOPQRSTUV"[dot(body, range(8, 1, -1)) % 23]


def _korean(rng: random.Random) -> str:
    return date(rng, "yymmdd") + "-" + digits(rng, 7, "12")


def _malaysian(rng: random.Random) -> str:
    return date(rng, "yymmdd") + f"-{rng.randint(1, 14):02}-" + digits(rng, 4)


def _svnr(rng: random.Random) -> str:
    def one() -> str:
        three, day = digits(rng, 3, "123456789"), date(rng, "ddmmyy")
        return f"{three}{dot(three + '0' + day, (3, 7, 9, 0, 5, 8, 4, 2, 1, 6)) % 11}{day}"

    return grouped(until(one, lambda number: len(number) == 10), "9999 999999")


def _ahv(rng: random.Random) -> str:
    body = "756" + digits(rng, 9)
    total = sum(int(char) * (3 if place % 2 else 1) for place, char in enumerate(body))
    return grouped(body + str(-total % 10), "999.9999.9999.99")


def _identity_card_pl(rng: random.Random) -> str:
    series, number = letters(rng, 3), digits(rng, 5)
    return series + str(dot(series + number, (7, 3, 1, 7, 3, 1, 7, 3)) % 10) + number


def _identity_card_de(rng: random.Random) -> str:
    body = rng.choice("LMNPRT") + letters(rng, 8, "CFGHJKLMNPRTVWXYZ0123456789")
    return body + str(dot(body, (7, 3, 1) * 3) % 10)


def _nhs(rng: random.Random) -> str:
    make = summed(lambda r: digits(r, 9, "4567"), range(10, 1, -1), strict_eleven)
    return grouped(make(rng), "999 999 9999")


def _thai(rng: random.Random) -> str:
    body = digits(rng, 12, "12345678")
    rest = (11 - dot(body, range(13, 1, -1)) % 11) % 10
    return grouped(f"{body}{rest}", "9-9999-99999-99-9")


def _nik(rng: random.Random) -> str:
    return rng.choice(("3171", "3273", "5171")) + digits(rng, 2) + date(rng, "ddmmyy") + "0001"


def _egyptian(rng: random.Random) -> str:
    return "2" + date(rng, "yymmdd") + "01" + digits(rng, 5)


def _luxembourg(rng: random.Random) -> str:
    body = date(rng, "yyyymmdd") + digits(rng, 3)
    return body + luhn_digit(body) + verhoeff_digit(body)


PEOPLE = (
    Maker("PL", "PESEL", _pesel),
    Maker(
        "PL",
        "NIP",
        summed(
            lambda r: digits(r, 9, "123456789"),
            (6, 5, 7, 2, 3, 4, 5, 6, 7),
            lambda total: total % 11,
            "999-999-99-99",
        ),
        is_found_bare=True,
    ),
    Maker(
        "PL",
        "REGON",
        summed(lambda r: digits(r, 8), (8, 9, 2, 3, 4, 5, 6, 7), lambda total: total % 11 % 10),
    ),
    Maker("PL", "dowód osobisty", _identity_card_pl),
    Maker("DE", "Steuer-ID", _steuer_id),
    Maker("DE", "Personalausweisnummer", _identity_card_de),
    Maker("AT", "Sozialversicherungsnummer", _svnr),
    Maker("CH", "AHV-Nummer", _ahv, is_found_bare=True),
    Maker("FR", "numéro de sécurité sociale", _nir, is_found_bare=True),
    Maker("BE", "rijksregisternummer", _belgian, is_found_bare=True),
    Maker("NL", "BSN", _bsn),
    Maker("LU", "matricule", _luxembourg),
    Maker("ES", "DNI", _dni, is_found_bare=True),
    Maker(
        "PT",
        "NIF",
        summed(lambda r: digits(r, 8, "12"), range(9, 1, -1), from_eleven),
    ),
    Maker("IT", "codice fiscale", _codice, is_found_bare=True),
    Maker("IT", "partita IVA", _with_luhn(11, "0")),
    Maker("GB", "NHS number", _nhs),
    Maker("IE", "PPS number", _pps),
    Maker("SE", "personnummer", _personnummer, is_found_bare=True),
    Maker("NO", "fødselsnummer", _fodselsnummer),
    # Denmark gives numbers without the check digit since 2007.
    Maker("DK", "CPR-nummer", _cpr, is_found_bare=True, has_check=False),
    Maker("FI", "henkilötunnus", _hetu, is_found_bare=True),
    Maker("EE", "isikukood", _baltic),
    Maker("LT", "asmens kodas", _baltic),
    Maker("CZ", "rodné číslo", _rodne, is_found_bare=True),
    Maker("HR", "OIB", _oib),
    Maker("RS", "JMBG", _jmbg),
    Maker(
        "RO",
        "CNP",
        summed(
            lambda r: r.choice("12") + date(r, "yymmdd") + f"{r.randint(1, 46):02}" + digits(r, 3),
            (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9),
            lambda total: 1 if total % 11 == 10 else total % 11,
        ),
    ),
    Maker(
        "BG",
        "ЕГН",
        summed(
            lambda r: date(r, "yymmdd") + digits(r, 3),
            (2, 4, 8, 5, 10, 9, 7, 3, 6),
            lambda total: total % 11 % 10,
        ),
    ),
    Maker(
        "GR",
        "ΑΦΜ",
        summed(
            lambda r: digits(r, 8, "01"),
            (256, 128, 64, 32, 16, 8, 4, 2),
            lambda total: total % 11 % 10,
        ),
    ),
    Maker("TR", "T.C. kimlik no", _tckn),
    Maker("RU", "ИНН", _inn),
    Maker("RU", "СНИЛС", _snils, is_found_bare=True),
    Maker("KZ", "ИИН", _iin),
    Maker("BR", "CPF", _cpf, is_found_bare=True),
    Maker("BR", "CNPJ", _cnpj, is_found_bare=True),
    Maker("AR", "CUIT", _cuit, is_found_bare=True),
    Maker("CL", "RUT", _rut, is_found_bare=True),
    Maker("MX", "CURP", _curp, is_found_bare=True),
    Maker("MX", "NSS", _with_luhn(11)),
    Maker("CA", "SIN", _with_luhn(9, "123456")),
    Maker("CN", "身份证号", _chinese, is_found_bare=True),
    Maker("JP", "マイナンバー", _my_number),
    Maker("TW", "身分證字號", _taiwanese),
    Maker("HK", "HKID", _hong_kong, is_found_bare=True),
    Maker("KR", "주민등록번호", _korean, is_found_bare=True, has_check=False),
    Maker("SG", "NRIC", _nric, is_found_bare=True),
    Maker("MY", "MyKad", _malaysian, is_found_bare=True, has_check=False),
    Maker("TH", "เลขประจำตัวประชาชน", _thai, is_found_bare=True),
    Maker("ID", "NIK", _nik, has_check=False),
    Maker("IN", "Aadhaar", _aadhaar, is_found_bare=True),
    Maker("IL", "תעודת זהות", _with_luhn(9, "0123")),
    Maker("AE", "Emirates ID", _emirates, is_found_bare=True),
    Maker("SA", "رقم الهوية", _with_luhn(10, "1")),
    Maker("EG", "الرقم القومي", _egyptian, has_check=False),
    Maker("IR", "کد ملی", _iranian),
    Maker("ZA", "South African ID", _south_african),
    Maker("AU", "TFN", _tfn),
    Maker("AU", "ABN", _abn),
    Maker("NZ", "IRD number", _ird),
)
"""Personal, tax and social security numbers."""

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def base58check(rng: random.Random, version: bytes, count: int) -> str:
    """Return *count* random bytes behind *version*, with their check sum."""
    raw = version + rng.randbytes(count)
    raw += hashlib.sha256(hashlib.sha256(raw).digest()).digest()[:4]
    number, text = int.from_bytes(raw, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        text = _BASE58[rest] + text
    return _BASE58[0] * (len(raw) - len(raw.lstrip(b"\0"))) + text


def bech32(rng: random.Random, prefix: str, count: int, constant: int = 1) -> str:
    """Return an address of the Bech32 format with *count* random characters."""
    alphabet = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
    values = [rng.randrange(32) for _ in range(count)]

    def polymod(every: list[int]) -> int:
        rest = 1
        for value in every:
            top = rest >> 25
            rest = ((rest & 0x1FFFFFF) << 5) ^ value
            for bit in range(5):
                if top >> bit & 1:
                    steps = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
                    rest ^= steps[bit]
        return rest

    expanded = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    rest = polymod([*expanded, *values, 0, 0, 0, 0, 0, 0]) ^ constant
    check = [(rest >> 5 * (5 - place)) & 31 for place in range(6)]
    return prefix + "1" + "".join(alphabet[value] for value in values + check)


WALLETS = {
    "Bitcoin": lambda rng: base58check(rng, b"\0", 20),
    "Bitcoin script": lambda rng: base58check(rng, b"\x05", 20),
    "Litecoin": lambda rng: base58check(rng, b"\x30", 20),
    "Dogecoin": lambda rng: base58check(rng, b"\x1e", 20),
    "Dash": lambda rng: base58check(rng, b"\x4c", 20),
    "Zcash": lambda rng: base58check(rng, b"\x1c\xb8", 20),
    "Tron": lambda rng: base58check(rng, b"\x41", 20),
    "Bitcoin, Bech32": lambda rng: bech32(rng, "bc", 33),
    "Bitcoin, Bech32m": lambda rng: bech32(rng, "bc", 53, 0x2BC830A3),
    "Litecoin, Bech32": lambda rng: bech32(rng, "ltc", 33),
    "Cardano": lambda rng: bech32(rng, "addr", 92),
    "Cosmos": lambda rng: bech32(rng, "cosmos", 32),
    "Ethereum": lambda rng: "0x" + rng.randbytes(20).hex(),
}
"""Addresses of crypto-currencies, by their names."""
