"""Made-up IBANs, cards, devices, addresses of networks, and secrets."""

from __future__ import annotations

import random
import string

from .national_ids import digits, luhn_digit

# The country's code, and its account numbers: # stands for a digit, @ for a capital letter.
_IBAN = {
    "ar": "SA " + "#" * 20,
    "cs": "CZ " + "#" * 20,
    "da": "DK " + "#" * 14,
    "de": "DE " + "#" * 18,
    "el": "GR " + "#" * 23,
    "en": "GB @@@@" + "#" * 14,
    "es": "ES " + "#" * 20,
    "fi": "FI " + "#" * 14,
    "fr": "FR " + "#" * 23,
    "he": "IL " + "#" * 19,
    "it": "IT @" + "#" * 22,
    "nl": "NL @@@@" + "#" * 10,
    "pl": "PL " + "#" * 24,
    "pt": "PT " + "#" * 21,
    "sv": "SE " + "#" * 20,
    "tr": "TR #####0" + "#" * 16,
    "uk": "UA " + "#" * 25,
}
IBAN_LANGUAGES = frozenset(_IBAN)
"""Languages whose country has IBANs."""


def filled(pattern: str, rng: random.Random) -> str:
    """A pattern with digits for ``#``, other than 0 for ``%``, capitals for ``@`` and ``&``."""
    alphabets = {
        "#": string.digits,
        "%": string.digits[1:],
        "@": string.ascii_uppercase,
        "&": "АВЕКМНОРСТХ",  # noqa: RUF001 - the Cyrillic letters of number plates
    }
    return "".join(rng.choice(alphabets.get(letter, letter)) for letter in pattern)


def iban(language: str, rng: random.Random) -> str:
    """An IBAN of the language's country, in print or without spaces."""
    country, _, pattern = _IBAN[language].partition(" ")
    account = filled(pattern, rng)
    number = int("".join(str(int(letter, 36)) for letter in f"{account}{country}00"))
    made = f"{country}{98 - number % 97:02}{account}"
    printed = " ".join(made[start : start + 4] for start in range(0, len(made), 4))
    return rng.choice((made, printed))


def card(rng: random.Random) -> str:
    """The number of a card, in groups or without."""
    prefix = rng.choice(("4", "51", "52", "53", "54", "55", "2221", "6011"))
    body = prefix + digits(rng, 15 - len(prefix))
    number = body + luhn_digit(body)
    groups = [number[start : start + 4] for start in range(0, 16, 4)]
    return rng.choice(("", " ", "-")).join(groups)


def imei(rng: random.Random) -> str:
    """The number of a telephone set."""
    body = "35" + digits(rng, 12)
    return body + luhn_digit(body)


def ip_address(rng: random.Random) -> str:
    """An address that could be somebody's at home."""
    if rng.random() < 0.25:
        groups = [f"{rng.randrange(1, 65536):x}" for _ in range(6)]
        return ":".join(["2a02", f"{rng.randrange(256, 4096):x}", *groups])
    first = rng.choice((31, 46, 62, 78, 81, 85, 91, 109, 145, 178, 188, 203, 212))
    return ".".join(str(part) for part in (first, *(rng.randint(1, 254) for _ in range(3))))


def mac_address(rng: random.Random) -> str:
    """The address of a network card."""
    return rng.choice(":-").join(f"{rng.randrange(256):02x}" for _ in range(6))


def password(rng: random.Random) -> str:
    """A password as people choose them, or as a machine does."""
    if rng.random() < 0.5:
        word = "".join(rng.choice(string.ascii_lowercase) for _ in range(rng.randint(5, 8)))
        return f"{word.capitalize()}{rng.randint(10, 2099)}{rng.choice('!?#$*')}"
    return "".join(rng.choice(string.ascii_letters + string.digits + "!#$%*-_") for _ in range(14))


def key(rng: random.Random) -> str:
    """A key by which a service lets a program in."""
    prefix, alphabet, length = rng.choice(
        (
            ("ghp_", string.ascii_letters + string.digits, 36),
            ("sk_live_", string.ascii_letters + string.digits, 24),
            ("glpat-", string.ascii_letters + string.digits, 20),
            ("AKIA", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
            ("xoxb-", string.digits, 24),
            ("hf_", string.ascii_letters, 34),
        )
    )
    return prefix + "".join(rng.choice(alphabet) for _ in range(length))
