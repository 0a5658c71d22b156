"""Payment cards and international bank accounts (IBAN), by shape and check digits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from ..digit_runs import is_word_near, search_digit_runs
from ..finding import Finding
from ..lazy_pattern import compile_later
from ..prefilter import TextFeatures
from ..word_lists import split_words
from .arithmetic import luhn, mod_97_10
from .kinds import ALNUM
from .rows import read_rows

_SPACED = r"\d_A-Za-z\u00aa-\u058f"
"""Of scripts with spaces between words: a number does not touch them."""

_CARD = compile_later(
    rf"\d(?<![{_SPACED}.,+-].)(?:[ -]?\d){{11,18}}(?![{_SPACED}]|[.,]\d|-[{_SPACED}])"
)
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
    r"4\d{15}|5[1-5]\d{14}|2(?:2[3-9]|[3-6]\d|7[01])\d{13}|222[1-9]\d{12}|2720\d{12}"
    r"|3[47]\d{13}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14}"
)
"""Of a number that no word and no grouping gives away: the ranges that most cards are of."""

_RARE_CARD_SHAPE = compile_later(
    r"4(?:\d{12}|\d{18})|62\d{15,17}|6(?:011|5\d\d|4[4-9]\d)\d{15}|35\d{14}"
    r"|3(?:0[0-5]|[689]\d)\d{11}|(?:2131|1800)\d{11}|220[0-4]\d{12}"
    r"|(?:5[06-8]|6[0-9]|8[12])\d{10,17}"
)
_CARD_GROUPS = compile_later(
    r"\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{1,3})?|\d{4}([ -])\d{6}\2\d{4,5}"
)
_OTHER_NUMBER_BEFORE = compile_later(
    r"(?<![^\W_])(?:orders?|invoice|ticket|tracking|reference|ref|sku|id|ids|timestamps?|ts|isbn|ean"
    r"|upc|gtin|serial|version|build|batch|job|pid|trace|span|request|session|offset|case|event"
    r"|snowflake|seq|sequence|imei|bestellung|bestellnummer|commande|facture|pedido|factura"
    r"|bytes?|sizes?|count|counter|ns|us|ms|nanos|micros|time|at|epoch|duration|length|hash|seed"
    r"|nonce|random|position|checksum|crc|memory|heap|inode|ticks?|cycles?|uptime)"
    r"(?:[ _-]?(?:numbers?|num|no\.?|nr\.?|id|code|is))*[\"']?[\s:=#]{0,3}\Z"
    r"|[\"'][ ]{0,2}:[ ]{0,2}\Z",
    re.IGNORECASE,
)
"""What calls a number something else. The value of a JSON key without quotes is an amount."""

_UNIT_AFTER = compile_later(r"[ ]?(?:[kKMGT]i?B|bytes?|[mnu\u00b5]s|rows?|ticks?|cycles?)\b")
_SHORTEST_CARD = 12

_IBAN_START = compile_later(rf"[A-Za-z](?<!{ALNUM}.)(?<!_.)[A-Za-z][ ]?\d\d(?=[ -]?[A-Za-z0-9])")
_IBAN_WORD = compile_later(r"(?<![^\W_])iban", re.IGNORECASE)
_ANY_IBAN = compile_later(
    r"[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]{4}){2,7}(?:[ -]?[A-Za-z0-9]{1,3})?(?![A-Za-z0-9])"
)
_IBAN_GROUPS = compile_later(r".{4}(?:-.{4})+(?:-.{1,3})?")
_IBAN_CLASSES = {"n": r"\d", "a": "[A-Za-z]", "c": "[A-Za-z0-9]"}
_LEAST_IBAN_DIGITS = 8


def find_cards(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find payment cards: by shape and check digit, or beside a word for card."""
    has_card_word = not features.words.isdisjoint(_CARD_CONTEXT)
    for match in search_digit_runs(_CARD, text, features, _SHORTEST_CARD):
        near = has_card_word and is_word_near(_CARD_WORDS, text, match)
        if _is_card(text, match, near=near):
            yield Finding(*match.span(), "CREDIT_CARD", 1.0, "card shape with check digit")
        elif near:
            yield Finding(
                *match.span(), "CREDIT_CARD", 0.8, "12 to 19 digits beside a word for card"
            )


def find_ibans(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find international bank account numbers: by check digits, or where the text says IBAN."""
    end = 0
    for match in _IBAN_START.finditer(text):
        if (
            match.start() < end
            or (pattern := _iban_patterns().get(match.group()[:2].upper())) is None
        ):
            continue
        found = pattern.match(text, match.start())
        if found and _is_iban(text, found):
            end = found.end()
            yield Finding(*found.span(), "IBAN_CODE", 1.0, "check digits of the country's IBAN")
        elif "iban" in features.words and (labelled := _labelled_iban(text, match)):
            end = labelled.end()
            yield Finding(*labelled.span(), "IBAN_CODE", 0.7, "shape, beside the word IBAN")


def _is_card(text: str, match: re.Match[str], *, near: bool) -> bool:
    found = match.group()
    digits = re.sub(r"[ -]", "", found)
    if not luhn(digits):
        return False
    if near or _CARD_GROUPS.fullmatch(found):
        return bool(_CARD_SHAPE.fullmatch(digits) or _RARE_CARD_SHAPE.fullmatch(digits))
    before = text[max(0, match.start() - 40) : match.start()]
    plain = len(digits) == len(found) and _CARD_SHAPE.fullmatch(digits)
    is_other = _OTHER_NUMBER_BEFORE.search(before) or _UNIT_AFTER.match(text, match.end())
    return bool(plain) and not is_other


def _is_iban(text: str, match: re.Match[str]) -> bool:
    found = match.group()
    if "-" in found and (
        text[match.start() - 1 : match.start()] == "-" or not _IBAN_GROUPS.fullmatch(found)
    ):
        return False
    letters = "".join(filter(str.isalpha, found))
    iban = re.sub(r"[ -]", "", found).upper()
    same_case = letters.isupper() or letters.islower()
    return same_case and iban.isascii() and mod_97_10(iban[4:] + iban[:4])


def _labelled_iban(text: str, match: re.Match[str]) -> re.Match[str] | None:
    if not is_word_near(_IBAN_WORD, text, match):
        return None
    found = _ANY_IBAN.match(text, match.start())
    return found if found and sum(map(str.isdigit, found.group())) >= _LEAST_IBAN_DIGITS else None


@cache
def _iban_patterns() -> dict[str, re.Pattern[str]]:
    rows = (line.split() for line in read_rows("iban_countries"))
    return {country: re.compile(_iban_pattern(structure)) for country, structure in rows}


def _iban_pattern(structure: str) -> str:
    parts = re.findall(r"(\d+)([nac])", structure)
    account = "".join(f"(?:[ -]?{_IBAN_CLASSES[kind]}){{{count}}}" for count, kind in parts)
    return rf"[A-Za-z]{{2}}[ ]?\d\d{account}(?!{ALNUM}|_|-[A-Za-z0-9])"
