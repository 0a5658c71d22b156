"""Numbers of people and sole traders in France, Benelux, Iberia and Italy."""

from __future__ import annotations

from .check_digits import (
    Check,
    all_of,
    check_character,
    date_at,
    luhn,
    mod_97_10,
    part,
    verhoeff,
    weighted_sum,
)

_CODICE_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (
            1,
            0,
            5,
            7,
            9,
            13,
            15,
            17,
            19,
            21,
            1,
            0,
            5,
            7,
            9,
            13,
            15,
            17,
            19,
            21,
            2,
            4,
            18,
            20,
            11,
            3,
            6,
            8,
            12,
            14,
            16,
            10,
            22,
            25,
            24,
            23,
        ),
        strict=True,
    )
)
_CODICE_MONTHS = "ABCDEHLMPRST"
_CODICE_DIGITS = str.maketrans("LMNPQRSTUV", "0123456789")
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_CIF_LETTERS = "JABCDEFGHI"
_NIF = check_character((9, 8, 7, 6, 5, 4, 3, 2), "00987654321")
_NISS = check_character((29, 23, 19, 17, 13, 11, 7, 5, 3, 2), "9876543210")


def _nir(number: str) -> bool:
    digits = number.replace("2A", "19", 1).replace("2B", "18", 1)
    if not digits.isdigit() or digits[0] not in "123478":
        return False
    month = int(digits[3:5])
    in_year = 1 <= month <= 12 or 20 <= month <= 42 or month >= 50  # noqa: PLR2004
    return in_year and 97 - int(digits[:13]) % 97 == int(digits[13:])


def _spi(number: str) -> bool:
    return number[0] in "0123" and int(number[:10]) % 511 == int(number[10:])


def _french_vat(number: str) -> bool:
    key, siren = number[2:4], number[4:]
    return luhn(siren) and key == f"{(12 + 3 * (int(siren) % 97)) % 97:02}"


def _belgian(number: str) -> bool:
    body, key = int(number[:9]), int(number[9:])
    month, day = int(number[2:4]) % 20, int(number[4:6])
    checks = key in {97 - body % 97, 97 - (2_000_000_000 + body) % 97}
    return checks and month <= 12 and day <= 31  # noqa: PLR2004 - zero where it is not known


def _belgian_company(number: str) -> bool:
    return number[0] in "01" and 97 - int(number[:8]) % 97 == int(number[8:])


_BSN = all_of(weighted_sum((9, 8, 7, 6, 5, 4, 3, 2, -1), 11), lambda number: number[:4] != "0000")


def _dutch_vat(number: str) -> bool:
    return _BSN(number[2:11]) or mod_97_10(number)


def _luxembourg(number: str) -> bool:
    return luhn(number[:12]) and verhoeff(number[:11] + number[12])


def _dni(number: str) -> bool:
    return number[-1] == _DNI_LETTERS[int(number[:-1]) % 23]


def _nie(number: str) -> bool:
    return _dni(str("XYZ".index(number[0])) + number[1:])


def _cif(number: str) -> bool:
    digits = number[1:8]
    total = sum(sum(divmod(int(digit) * 2, 10)) for digit in digits[::2])
    rest = (10 - (total + sum(map(int, digits[1::2])))) % 10
    return number[-1] in {str(rest), _CIF_LETTERS[rest]}


def _spanish_social(number: str) -> bool:
    province, person = int(number[:2]), int(number[2:10])
    joined = province * 10_000_000 + person if person < 10_000_000 else int(number[:10])  # noqa: PLR2004
    return joined % 97 == int(number[10:])


def _ccc(number: str) -> bool:
    weights = (1, 2, 4, 8, 5, 10, 9, 7, 3, 6)

    def digit(part_of: str) -> str:
        rest = sum(int(char) * weight for char, weight in zip(part_of, weights, strict=True)) % 11
        return "01987654321"[rest]

    return number[8:10] == digit("00" + number[:8]) + digit(number[10:])


def _codice_fiscale(number: str) -> bool:
    total = sum(
        int(char, 36) - 10 * char.isalpha() if index % 2 else _CODICE_ODD[char]
        for index, char in enumerate(number[:15])
    )
    day = number[9:11].translate(_CODICE_DIGITS)
    in_month = number[8] in _CODICE_MONTHS and day.isdigit() and int(day) % 40 in range(1, 32)
    return in_month and number[15] == chr(65 + total % 26)


def _rib(number: str) -> bool:
    bank, branch, account, key = number[:5], number[5:10], number[10:21], number[21:]
    return (89 * int(bank) + 15 * int(branch) + 3 * int(account) + int(key)) % 97 == 0


CHECKS: dict[str, Check] = {
    "fr nir": _nir,
    "fr tax number": _spi,
    "fr siren": luhn,
    "fr vat number": _french_vat,
    "be national number": _belgian,
    "be company number": _belgian_company,
    "be vat number": part(2, None, _belgian_company),
    "be identity card": lambda number: int(number[:10]) % 97 == int(number[10:]) % 97,
    "nl bsn": _BSN,
    "nl vat number": _dutch_vat,
    "lu national number": all_of(date_at(0, "yyyymmdd"), _luxembourg),
    "lu vat number": lambda number: int(number[2:8]) % 89 == int(number[8:]),
    "es dni": _dni,
    "es nie": _nie,
    "es cif": _cif,
    "es vat number": part(2, None, _dni),
    "es vat number 2": part(2, None, _nie),
    "es social security number": _spanish_social,
    "es account number": _ccc,
    "pt nif": all_of(
        _NIF, lambda number: number[0] in "1235689" or number[:2] in {"45", "70", "74"}
    ),
    "pt vat number": part(2, None, _NIF),
    "pt social security number": all_of(_NISS, lambda number: number[0] in "12"),
    "it codice fiscale": _codice_fiscale,
    "it vat number": part(2, None, luhn),
    "fr account number": _rib,
}
