"""
Full names in Vietnamese, whose words are all short and mostly words of the language too.

One of some hundred family names stands first, then one to three names with capitals; a chat's
speaker may write them small. Streets and towns are named after people too: a word for them before
a name says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from .finding import Finding
from .lazy_pattern import compile_later
from .person_lexicon import read_sections

_TONES = compile_later("[\u0102\u0103\u0110\u0111\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9]")
_NAME = r"(?:[^\W\d_]{1,7})"
_PLACES_TOO = frozenset({"hồ chí minh", "lâm đồng", "vũ hán", "thái nguyên", "thái bình", "hà nội"})
_LOOKBACK_CHARS = 24


def is_vietnamese(text: str) -> bool:
    """Return whether a text has letters that no other language has."""
    return _TONES.search(text) is not None


def find_vietnamese(text: str) -> Iterator[Finding]:
    """Find a family name with the names behind it, and chat speakers who write them small."""
    for match in _full_name().finditer(text):
        name = match["name"]
        is_name = name.isupper() or all(word[0].isupper() for word in name.split())
        before = " " + text[max(0, match.start() - _LOOKBACK_CHARS) : match.start()].lower()
        if (
            is_name
            and name.lower() not in _PLACES_TOO
            and not before.rstrip(" .").endswith(_place_words())
        ):
            yield Finding(*match.span("name"), "PERSON", 0.7, "a family name before others")
    for match in _speaker().finditer(text):
        yield Finding(*match.span("name"), "PERSON", 0.7, "a speaker's name")


@cache
def _families() -> str:
    entries = sorted(read_sections("vi")["local_family"], key=lambda entry: (-len(entry), entry))
    return "|".join(map(re.escape, entries))


@cache
def _place_words() -> tuple[str, ...]:
    return (*(f" {each}" for each in read_sections("vi")["place_before"]), "tp", "đ", "p", "q")


@cache
def _full_name() -> re.Pattern[str]:
    capital = r"(?=[^\W\d_a-z])"
    return re.compile(
        rf"(?<![\w.'@/-])(?P<name>{capital}(?i:{_families()})"
        rf"(?: {capital}{_NAME}(?!\w)){{1,3}})(?![\w@/])"
    )


@cache
def _speaker() -> re.Pattern[str]:
    return re.compile(rf"^(?P<name>(?:{_families()})(?: {_NAME}){{1,3}}):(?= )", re.MULTILINE)
