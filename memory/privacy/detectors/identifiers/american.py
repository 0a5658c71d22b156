"""Numbers of people and sole traders in the Americas."""

from __future__ import annotations

from .check_digits import Check, all_of, check_character, date_at, is_day, luhn, part, weighted_sum

_FROM_ELEVEN = "00987654321"
"""The check digit is eleven less the rest, and none of two digits."""

_CURP_ALPHABET = "0123456789ABCDEFGHIJKLMN-OPQRSTUVWXYZ"
_RFC_ALPHABET = "0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ -"
_RIF_LETTERS = {"V": 4, "E": 8, "J": 12, "P": 16, "G": 20, "C": 12}
_COLOMBIAN = (3, 7, 13, 17, 19, 23, 29, 37, 41, 43, 47, 53, 59, 67, 71)
_ITIN_GROUPS = {*range(50, 66), *range(70, 89), *range(90, 93), *range(94, 100)}
_ABA_PREFIXES = {*range(13), *range(21, 33), *range(61, 73), 80}
_CUIT_TYPES = frozenset({"20", "23", "24", "25", "26", "27", "30", "33", "34", "50", "51", "55"})
_ECUADOR_PROVINCES = {*range(1, 25), 30}


def _varied(number: str) -> bool:
    return len(set(number)) > 1


_CPF = all_of(
    _varied,
    part(0, 10, check_character(range(10, 1, -1), _FROM_ELEVEN)),
    check_character(range(11, 1, -1), _FROM_ELEVEN),
)


def _cnpj(number: str) -> bool:
    values = [ord(char) - 48 for char in number]
    for length in (12, 13):
        weights = ((length - index - 1) % 8 + 2 for index in range(length))
        rest = sum(value * weight for value, weight in zip(values, weights, strict=False)) % 11
        if values[length] != int(_FROM_ELEVEN[rest]):
            return False
    return _varied(number)


def _cnh(number: str) -> bool:
    digits = [int(char) for char in number]
    first = sum(digit * (9 - index) for index, digit in enumerate(digits[:9])) % 11
    less = 2 if first == 10 else 0  # noqa: PLR2004 - what one digit cannot say
    second = sum(digit * (1 + index) for index, digit in enumerate(digits[:9])) % 11 - less
    second = second + 11 if second < 0 else second
    return _varied(number) and digits[9:] == [first % 10, 0 if second > 9 else second]  # noqa: PLR2004


def _titulo(number: str) -> bool:
    digits = [int(char) for char in number]
    state = digits[8] * 10 + digits[9]
    first = sum(digit * (2 + index) for index, digit in enumerate(digits[:8])) % 11 % 10
    second = (digits[8] * 7 + digits[9] * 8 + digits[10] * 9) % 11 % 10
    few = state in {1, 2}
    firsts = {first, 1} if few and first == 0 else {first}
    seconds = {second, 1} if few and second == 0 else {second}
    return 1 <= state <= 28 and digits[10] in firsts and digits[11] in seconds  # noqa: PLR2004


def _rut(number: str) -> bool:
    pairs = enumerate(reversed(number[:-1]))
    total = sum(int(char) * (2 + index % 6) for index, char in pairs)
    return number[-1] == "0K987654321"[total % 11]


def _nit_colombia(number: str) -> bool:
    pairs = zip(reversed(number[:-1]), _COLOMBIAN, strict=False)
    total = sum(int(char) * weight for char, weight in pairs)
    return number[-1] == "01987654321"[total % 11]


def _from_right(of_rest: str) -> Check:
    """Return the check with the weights 2, 3, 4… from the right."""

    def holds(number: str) -> bool:
        pairs = enumerate(reversed(number[:-1]), 2)
        total = sum(int(char) * weight for weight, char in pairs)
        return number[-1] == of_rest[total % len(of_rest)]

    return holds


def _ecuador(number: str) -> bool:
    return int(number[:2]) in _ECUADOR_PROVINCES and number[2] < "6" and luhn(number[:10])


def _rif(number: str) -> bool:
    total = _RIF_LETTERS[number[0]] + sum(
        int(char) * weight
        for char, weight in zip(number[1:], (3, 2, 7, 6, 5, 4, 3, 2), strict=False)
    )
    return number[-1] == _FROM_ELEVEN[total % 11]


def _rnc(number: str) -> bool:
    weights = (7, 9, 8, 6, 5, 4, 3, 2)
    total = sum(int(char) * weight for char, weight in zip(number, weights, strict=False))
    return (10 - total % 11) % 9 + 1 == int(number[8])


def _cui(number: str) -> bool:
    total = sum(int(char) * (2 + index) for index, char in enumerate(number[:8]))
    return total % 11 == int(number[8]) and 1 <= int(number[9:11]) <= 22  # noqa: PLR2004


def _curp(number: str) -> bool:
    pairs = enumerate(number[:17])
    total = sum(_CURP_ALPHABET.index(char) * (18 - index) for index, char in pairs)
    return date_at(4, "yymmdd")(number) and number[17] == str(-total % 10)


def _rfc(number: str) -> bool:
    padded = number.rjust(13)
    pairs = enumerate(padded[:12])
    total = sum(_RFC_ALPHABET.index(char) * (13 - index) for index, char in pairs)
    return date_at(len(number) - 9, "yymmdd")(number) and number[-1] == "0A987654321"[total % 11]


def _clabe(number: str) -> bool:
    total = sum(int(char) * (3, 7, 1)[index % 3] % 10 for index, char in enumerate(number[:17]))
    return -total % 10 == int(number[17])


def _itin(number: str) -> bool:
    return int(number[3:5]) in _ITIN_GROUPS


def _npi(number: str) -> bool:
    return luhn("80840" + number)


def _dea(number: str) -> bool:
    digits = [int(char) for char in number[2:]]
    total = sum(digits[0:6:2]) + 2 * sum(digits[1:6:2])
    return total % 10 == digits[6]


def _aba(number: str) -> bool:
    in_use = int(number[:2]) in _ABA_PREFIXES
    return in_use and weighted_sum((3, 7, 1, 3, 7, 1, 3, 7, 1), 10)(number)


def _ramq(number: str) -> bool:
    return is_day(int(number[6:8]) % 50, int(number[8:10]))


_CBU = all_of(
    part(0, 8, check_character((7, 1, 3, 9, 7, 1, 3), "0987654321")),
    part(8, 22, check_character((3, 9, 7, 1, 3, 9, 7, 1, 3, 9, 7, 1, 3), "0987654321")),
)
_CUIT = all_of(
    lambda number: number[:2] in _CUIT_TYPES,
    check_character((5, 4, 3, 2, 7, 6, 5, 4, 3, 2), "09987654321"),
)
_RUC_PERU = all_of(
    lambda number: number[:2] in {"10", "15", "16", "17", "20"},
    check_character((5, 4, 3, 2, 7, 6, 5, 4, 3, 2), "10987654321"),
)

CHECKS: dict[str, Check] = {
    "us itin": all_of(lambda number: number[0] == "9", _itin),
    "us npi": _npi,
    "us dea number": _dea,
    "us routing number": _aba,
    "ca sin": all_of(lambda number: number[0] not in "08", luhn),
    "ca business number": part(0, 9, luhn),
    "ca health card": part(0, 10, luhn),
    "ca health card 2": _ramq,
    "mx curp": _curp,
    "mx rfc": _rfc,
    "mx rfc 2": date_at(3, "yymmdd"),
    "mx nss": luhn,
    "mx account number": _clabe,
    "mx voter key": date_at(6, "yymmdd"),
    "br cpf": _CPF,
    "br cnpj": _cnpj,
    "br cnh": _cnh,
    "br pis/nit": check_character((3, 2, 9, 8, 7, 6, 5, 4, 3, 2), _FROM_ELEVEN),
    "br voter number": _titulo,
    "br health card": weighted_sum(range(15, 0, -1), 11),
    "ar cuit/cuil": _CUIT,
    "ar account number": _CBU,
    "cl rut": _rut,
    "co nit": _nit_colombia,
    "pe ruc": _RUC_PERU,
    "ec cédula": _ecuador,
    "ec ruc": lambda number: number[2] in "012345689" and int(number[:2]) in _ECUADOR_PROVINCES,
    "uy cédula": check_character((2, 9, 8, 7, 6, 3, 4), "0987654321"),
    "uy rut": check_character((4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2), "0-987654321"),
    "ve rif": _rif,
    "py ruc": _from_right("00987654321"),
    "gt nit": _from_right("0K987654321"),
    "gt cui/dpi": _cui,
    "sv dui": check_character(range(9, 1, -1), "0987654321"),
    "sv nit": date_at(4, "ddmmyy"),
    "ni cédula": date_at(3, "ddmmyy"),
    "do rnc": _rnc,
    "cu identity card": date_at(0, "yymmdd"),
}
