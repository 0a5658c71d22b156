"""
The lists of names and of the words around them, a file a language: ``data/persons/<code>.txt``.

A file has sections in brackets and entries between spaces; ``_`` is a space inside an entry.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant

from __future__ import annotations

import unicodedata
from functools import cache
from importlib.resources import files

from .lazy_pattern import compile_later

_DATA = files(__package__ or __name__).joinpath("data", "persons")
SCRIPTS: dict[str, tuple[str, ...]] = {
    "latin": (
        *("en", "de", "fr", "es", "it", "pt", "nl", "pl", "cs", "sv", "da", "fi", "tr", "vi"),
        *("world", "many"),
    ),
    "cyrillic": ("ru", "uk", "bg"),
    "greek": ("el",),
    "arabic": ("ar", "fa"),
    "hebrew": ("he",),
    "devanagari": ("hi",),
    "thai": ("th",),
    "chinese": ("zh",),
    "japanese": ("ja",),
    "korean": ("ko",),
}
"""The languages that there is a file of, by script."""

LANGUAGES = tuple(each for languages in SCRIPTS.values() for each in languages)
WORD_SHAPE = (
    r"[\u0900-\u0963\u0970-\u097f\u200c\u200d]+"
    r"|[\u0620-\u065f\u066e-\u06d3\u06fa-\u06ff\u200c]+"
    r"|[\u05d0-\u05ea](?:[\u0591-\u05c7\u05d0-\u05ea]|[\"'\u05f3\u05f4-](?=[\u05d0-\u05ea]))*['\u05f3]?"
    r"|[^\W\d_]+(?:(?:-(?=[^\W\d_])|['\u2019\u02bc](?=[A-Z\u0400-\u04ff]))[^\W\d_]*)*"
)
"""
A word. An apostrophe joins only O'Brien, D'Angelo and Cyrillic words; in scripts without capitals
signs belong to words that `str.isalpha` does not count.
"""

_WORD = compile_later(WORD_SHAPE)
_LETTERS = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"}
    | {"أ": "ا", "إ": "ا", "آ": "ا", "ی": "ي", "ک": "ك", "ة": "ه", "ۀ": "ه"}
    | {"׳": "'", "״": '"', "\u2019": "'", "\u02bc": "'"}
    | {chr(code): None for code in (*range(0x064B, 0x0653), *range(0x0591, 0x05C8), 0x200C, 0x200D)}
)
_KEEPS_MARKS = compile_later(r"[\u0900-\u0eff\u3040-\ud7ff]")


@cache
def read_sections(language: str) -> dict[str, tuple[str, ...]]:
    """Return the entries of a language's file by section."""
    sections: dict[str, list[str]] = {}
    entries: list[str] = []
    for line in _DATA.joinpath(f"{language}.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            entries = sections.setdefault(line.strip("[]"), [])
        elif not line.startswith("#"):
            entries += (entry.replace("_", " ") for entry in line.split())
    return {section: tuple(dict.fromkeys(found)) for section, found in sections.items()}


def fold(text: str) -> str:
    """Return *text* in lower case, without accents and with one letter for variants of it."""
    if text.isascii():
        return text.lower()
    folded = text.casefold().translate(_LETTERS)
    return folded if _KEEPS_MARKS.search(folded) else without_accents(folded)


def without_accents(lower: str) -> str:
    """Return a text in lower case without accents."""
    plain = lower.translate(_UNACCENTED)
    return plain if plain.isascii() else _decomposed(plain)


def _decomposed(text: str) -> str:
    parts = unicodedata.normalize("NFD", text)
    return "".join(char for char in parts if not unicodedata.combining(char))


_UNACCENTED = {code: _decomposed(chr(code)) for code in range(0xC0, 0x250)}
"""The letters of most languages: their decomposition takes three times as long."""


def phrase_key(text: str) -> str:
    """Return the words of a cue as they are looked up."""
    return " ".join(map(fold, _WORD.findall(text)))
