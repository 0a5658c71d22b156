"""Numbers that identify: cards, accounts, social security, addresses of machines, wallets."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterator

from .clues import Clues
from .finding import Finding
from .pattern import deferred
from .words import listed

_CARD = deferred(r"\d(?<![\w.,+-].)(?:[ -]?\d){11,18}(?![\w]|[.,]\d|-\d)")
_CARD_WORDS = deferred(
    r"\b(?:card|cards|credit|debit|visa|mastercard|maestro|amex|american express|discover|diners"
    r"|jcb"
    r"|cc|pan|kreditkarte|carte|tarjeta|carta)\b",
    re.IGNORECASE,
)
_CARD_CLUES = listed("""
    card cards credit debit visa mastercard maestro amex american discover diners jcb cc pan
    kreditkarte carte tarjeta carta
""")
_CARD_SHAPE = deferred(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|222[1-9]\d{12}"
    r"|2720\d{12}"
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35\d{14}|(?:2131"
    r"|1800)\d{11}"
    r"|62\d{14,17}|(?:5[06-8]|6[37])\d{14}"
)
_CONTEXT = 60
_CARD_LEAST, _SSN_LEAST = 12, 11

_IBAN = deferred(
    r"[A-Za-z](?<![A-Za-z0-9].)[A-Za-z]\d{2}(?:[ -]?[A-Za-z0-9]{4}){2,7}"
    r"(?:[ -]?[A-Za-z0-9]{1,3})?(?![A-Za-z0-9])"
)
_IBAN_LENGTHS = range(15, 35)
_SSN = deferred(r"\d(?<![\w-].)\d\d(?<!000)(?P<sep>[- .])\d{2}(?P=sep)\d{4}(?![\w]|-\d)")
_SSN_PLAIN = deferred(r"\d(?<![\w.-].)\d{8}(?![\w]|[.-]\d)")
_SSN_WORDS = deferred(r"\b(?:ssn|ssns|social security|itin|tin)\b", re.IGNORECASE)

_IPV4 = deferred(r"\d(?<![\w.].)\d{0,2}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
_VERSION_BEFORE = deferred(
    r"(?:\b(?:version|ver|v|release|build|section|oid|chrome|firefox|safari|edge|driver|firmware)"
    r"|[=~<>]=|[/@_])[ :=]{0,2}\Z",
    re.IGNORECASE,
)
_IPV6 = deferred(
    r"[0-9A-Fa-f:](?<![\w:.].)(?:(?<=:)|(?<!:)[0-9A-Fa-f]{0,3}:)(?:[0-9A-Fa-f]{0,4}:){1,6}"
    r"(?:[0-9A-Fa-f]{1,4}"
    r"|\d{1,3}(?:\.\d{1,3}){3})?(?![\w:])"
)
_MAC = deferred(
    r"[0-9A-Fa-f](?<![\w:-].)[0-9A-Fa-f]([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![\w:-])"
)

_IPV4_INSIDE = deferred(r"\.\d{1,3}\.\d{1,3}\.\d")
_MAC_INSIDE = deferred(r"[:-][0-9A-Fa-f]{2}[:-][0-9A-Fa-f]{2}[:-]")
_SHORTEST_IPV6 = 7
_FULL_IPV6 = 6
"""Colons in an IPv6 address that ends as an IPv4 address does; others have seven, or ``::``."""

_WALLET = deferred(
    r"[0b13LM](?<!\w.)(?:(?<=0)x[0-9a-fA-F]{40}|(?<=b)c1[a-z0-9]{25,62}"
    r"|(?<=[13])[1-9A-HJ-NP-Za-km-z]{25,34}|(?<=[LM])[1-9A-HJ-NP-Za-km-z]{26,33})(?!\w)"
)
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def cards(text: str, clues: Clues) -> Iterator[Finding]:
    """Find payment cards: by shape and check digit, or beside a word for card."""
    spoken_of = not clues.words.isdisjoint(_CARD_CLUES)
    for match in _in_numbers(_CARD, text, clues, _CARD_LEAST):
        digits = re.sub(r"[ -]", "", match.group())
        if _CARD_SHAPE.fullmatch(digits) and luhn(digits):
            yield Finding(*match.span(), "CREDIT_CARD", 1.0, "card shape with check digit")
        elif spoken_of and _near(_CARD_WORDS, text, match):
            yield Finding(
                *match.span(), "CREDIT_CARD", 0.8, "12 to 19 digits beside a word for card"
            )


def ibans(text: str, clues: Clues) -> Iterator[Finding]:
    """Find international bank account numbers: by check digits, or where the text says IBAN."""
    for match in _IBAN.finditer(text):
        if (end := _valid_iban_end(match)) is not None:
            yield Finding(match.start(), end, "IBAN_CODE", 1.0, "check digits (mod 97)")
        elif "iban" in clues.words:
            yield Finding(*match.span(), "IBAN_CODE", 0.7, "shape, in a text that says IBAN")


def social_security(text: str, clues: Clues) -> Iterator[Finding]:
    """Find US social security numbers: grouped, or nine digits beside the word."""
    for match in _in_numbers(_SSN, text, clues, _SSN_LEAST):
        if match["sep"] == "-" or _near(_SSN_WORDS, text, match):
            yield Finding(*match.span(), "US_SSN", 0.9, "grouped 3-2-4")
    if not clues.words.isdisjoint(("ssn", "ssns", "security", "itin", "tin")):
        for match in _SSN_PLAIN.finditer(text):
            if _near(_SSN_WORDS, text, match):
                yield Finding(*match.span(), "US_SSN", 0.85, "nine digits beside the word")


def machines(text: str, _clues: Clues) -> Iterator[Finding]:
    """Find IP and MAC addresses, except loopback, unspecified and broadcast, which name nobody."""
    if _IPV4_INSIDE.search(text):
        yield from _ipv4(text)
    if _MAC_INSIDE.search(text):
        for match in _MAC.finditer(text):
            yield Finding(*match.span(), "MAC_ADDRESS", 0.9, "MAC address")
    if "::" in text or text.count(":") >= _FULL_IPV6:
        yield from _ipv6(text)


def _ipv4(text: str) -> Iterator[Finding]:
    for match in _IPV4.finditer(text):
        version = _VERSION_BEFORE.search(text, max(0, match.start() - 12), match.start())
        if not version and _names_a_machine(match.group()):
            yield Finding(*match.span(), "IP_ADDRESS", 0.9, "IPv4 address")


def _ipv6(text: str) -> Iterator[Finding]:
    for match in _IPV6.finditer(text):
        address = match.group()
        # A time has colons too, and to find that it is no address takes the library long.
        if (
            len(address) >= _SHORTEST_IPV6
            and ("::" in address or address.count(":") >= _FULL_IPV6)
            and any(map(str.isdigit, address))
            and _names_a_machine(address)
        ):
            yield Finding(*match.span(), "IP_ADDRESS", 0.9, "IPv6 address")


def wallets(text: str, _clues: Clues) -> Iterator[Finding]:
    """Find crypto-currency addresses, Bitcoin's by check sum."""
    for match in _WALLET.finditer(text):
        address = match.group()
        if address.startswith(("0x", "bc1")) or _base58_checks(address):
            yield Finding(*match.span(), "CRYPTO", 0.95, "wallet address")


def _in_numbers(
    pattern: re.Pattern[str], text: str, clues: Clues, least: int
) -> Iterator[re.Match[str]]:
    """Find *pattern*, of *least* characters, which is digits all through and looks at two more."""
    for start, end in clues.numbers:
        if end - start >= least:
            yield from pattern.finditer(text, start, end + 2)


def luhn(digits: str) -> bool:
    """Check the last of *digits* by Luhn's algorithm."""
    total = 0
    for index, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (1 + index % 2)
        total += doubled - 9 if doubled > 9 else doubled  # noqa: PLR2004 - the algorithm's own
    return total % 10 == 0


def _near(words: re.Pattern[str], text: str, match: re.Match[str]) -> bool:
    start, end = match.span()
    return bool(
        words.search(text, max(0, start - _CONTEXT), start) or words.search(text, end, end + 20)
    )


def _valid_iban_end(match: re.Match[str]) -> int | None:
    found = match.group()
    ends = [len(found), *(m.start() for m in re.finditer(r"[ -]", found) if m.start() > 14)]  # noqa: PLR2004 - the shortest IBAN
    for end in ends:
        iban = re.sub(r"[ -]", "", found[:end]).upper()
        number = "".join(str(int(char, 36)) for char in iban[4:] + iban[:4])
        if len(iban) in _IBAN_LENGTHS and int(number) % 97 == 1:
            return match.start() + end
    return None


def _names_a_machine(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.packed == b"\xff" * 4)


def _base58_checks(address: str) -> bool:
    number = 0
    for char in address:
        number = number * 58 + _BASE58.index(char)
    try:
        raw = number.to_bytes(25, "big")
    except OverflowError:
        return False
    return hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]
