"""Payment cards, bank accounts (IBAN) and crypto-currency wallets, by shape and check digits."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from .digit_runs import is_word_near, search_digit_runs
from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures
from .word_lists import split_words

_CARD = compile_later(r"\d(?<![\w.,+-].)(?:[ -]?\d){11,18}(?![\w]|[.,]\d|-\d)")
_CARD_WORDS = compile_later(
    r"\b(?:card|cards|credit|debit|visa|mastercard|maestro|amex|american express|discover|diners"
    r"|jcb"
    r"|cc|pan|kreditkarte|carte|tarjeta|carta)\b",
    re.IGNORECASE,
)
_CARD_CONTEXT = split_words("""
    card cards credit debit visa mastercard maestro amex american discover diners jcb cc pan
    kreditkarte carte tarjeta carta
""")
_CARD_SHAPE = compile_later(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|222[1-9]\d{12}"
    r"|2720\d{12}"
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35\d{14}|(?:2131"
    r"|1800)\d{11}"
    r"|62\d{14,17}|(?:5[06-8]|6[37])\d{14}"
)
_SHORTEST_CARD = 12

_IBAN = compile_later(
    r"[A-Za-z](?<![A-Za-z0-9].)[A-Za-z]\d{2}(?:[ -]?[A-Za-z0-9]{4}){2,7}"
    r"(?:[ -]?[A-Za-z0-9]{1,3})?(?![A-Za-z0-9])"
)
_IBAN_LENGTHS = range(15, 35)

_WALLET = compile_later(
    r"[0b13LM](?<!\w.)(?:(?<=0)x[0-9a-fA-F]{40}|(?<=b)c1[a-z0-9]{25,62}"
    r"|(?<=[13])[1-9A-HJ-NP-Za-km-z]{25,34}|(?<=[LM])[1-9A-HJ-NP-Za-km-z]{26,33})(?!\w)"
)
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def find_cards(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find payment cards: by shape and check digit, or beside a word for card."""
    has_card_word = not features.words.isdisjoint(_CARD_CONTEXT)
    for match in search_digit_runs(_CARD, text, features, _SHORTEST_CARD):
        digits = re.sub(r"[ -]", "", match.group())
        if _CARD_SHAPE.fullmatch(digits) and _has_luhn_digit(digits):
            yield Finding(*match.span(), "CREDIT_CARD", 1.0, "card shape with check digit")
        elif has_card_word and is_word_near(_CARD_WORDS, text, match):
            yield Finding(
                *match.span(), "CREDIT_CARD", 0.8, "12 to 19 digits beside a word for card"
            )


def find_ibans(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find international bank account numbers: by check digits, or where the text says IBAN."""
    for match in _IBAN.finditer(text):
        if (end := _find_iban_end(match)) is not None:
            yield Finding(match.start(), end, "IBAN_CODE", 1.0, "check digits (mod 97)")
        elif "iban" in features.words:
            yield Finding(*match.span(), "IBAN_CODE", 0.7, "shape, in a text that says IBAN")


def find_wallets(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find crypto-currency addresses, Bitcoin's by check sum."""
    for match in _WALLET.finditer(text):
        address = match.group()
        if address.startswith(("0x", "bc1")) or _has_base58_checksum(address):
            yield Finding(*match.span(), "CRYPTO", 0.95, "wallet address")


def _has_luhn_digit(digits: str) -> bool:
    """Return whether the last of *digits* is their check digit by Luhn's algorithm."""
    total = 0
    for index, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (1 + index % 2)
        total += doubled - 9 if doubled > 9 else doubled  # noqa: PLR2004 - the algorithm's own
    return total % 10 == 0


def _find_iban_end(match: re.Match[str]) -> int | None:
    found = match.group()
    ends = [len(found), *(m.start() for m in re.finditer(r"[ -]", found) if m.start() > 14)]  # noqa: PLR2004 - the shortest IBAN
    for end in ends:
        iban = re.sub(r"[ -]", "", found[:end]).upper()
        number = "".join(str(int(char, 36)) for char in iban[4:] + iban[:4])
        if len(iban) in _IBAN_LENGTHS and int(number) % 97 == 1:
            return match.start() + end
    return None


def _has_base58_checksum(address: str) -> bool:
    number = 0
    for char in address:
        number = number * 58 + _BASE58.index(char)
    try:
        raw = number.to_bytes(25, "big")
    except OverflowError:
        return False
    return hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]
