"""
What each language says about people: the words around names, and common names.

One file a language, ``data/persons/<language>.txt``: sections in brackets, entries between spaces,
``_`` for a space inside an entry. The languages of a script are read together, when a text in that
script first needs them.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from .lazy_pattern import compile_later
from .word_lists import (
    ALL_NAMES,
    AMBIGUOUS_NAMES,
    FAMILY_NAMES,
    GIVEN_NAMES,
    ORDINARY,
    read_words,
    split_words,
)

_DATA = files(__package__ or __name__).joinpath("data", "persons")
SCRIPTS: dict[str, tuple[str, ...]] = {
    "latin": (
        "en",
        "de",
        "fr",
        "es",
        "it",
        "pt",
        "nl",
        "pl",
        "cs",
        "sv",
        "da",
        "fi",
        "tr",
        "vi",
        "world",
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
"""The languages whose files are read together, by script."""

CASED_WORD = compile_later(
    r"[^\W\d_]+(?:(?:-(?=[^\W\d_])|['\u2019\u02bc](?=[A-Z\u0400-\u04ff]))[^\W\d_]*)*"
)
"""A word; an apostrophe joins only O'Brien, D'Angelo and Cyrillic words."""

UNCASED_WORD = compile_later(
    r"[\u0620-\u065f\u066e-\u06d3\u06fa-\u06ff]+"
    r"|[\u05d0-\u05ea](?:[\u0591-\u05c7\u05d0-\u05ea]|[\"'\u05f3\u05f4-](?=[\u05d0-\u05ea]))*['\u05f3]?"
    r"|[\u0900-\u0963\u0970-\u097f]+|[^\W\d_]+"
)
"""A word of a script without capitals, with the signs that `str.isalpha` does not count."""

_LETTERS = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"}
    | {"أ": "ا", "إ": "ا", "آ": "ا", "ی": "ي", "ک": "ك", "ة": "ه", "ۀ": "ه"}
    | {"׳": "'", "״": '"', "\u2019": "'", "\u02bc": "'"}
    | {chr(code): None for code in (*range(0x064B, 0x0653), *range(0x0591, 0x05C8), 0x200C, 0x200D)}
)
_KEEPS_MARKS = compile_later(r"[\u0900-\u0eff\u3040-\ud7ff]")


class NameKind:
    """
    What a word is known to be: bits of a number, since an `enum.Flag` takes ten times as long.

    Attributes:
        GIVEN: A given name.
        FAMILY: A family name.
        WORD_TOO: It is also an ordinary word, a place or a product.
        ENGLISH_WORD: It is also an English word: in English text, `WORD_TOO`.
    """

    GIVEN = 1
    FAMILY = 2
    WORD_TOO = 4
    ENGLISH_WORD = 8


class Lexicon(NamedTuple):
    """
    What the languages of one script say about people. All words are folded.

    Attributes:
        names: Known names.
        local_names: Names that count in one language only: they are words of others.
        cues: The words around names: by their text, the languages and the sections they are in.
        languages: Words that tell the languages of a text.
        endings: Endings of family names, longest first.
        inflections: By language, endings that a name's form may have, and what they stand for.
        cue_lengths: By the last word of a cue, how many words such cues have, most first.
    """

    names: dict[str, int]
    local_names: dict[str, dict[str, int]]
    cues: dict[str, dict[str, frozenset[str]]]
    languages: dict[str, frozenset[str]]
    endings: tuple[str, ...]
    inflections: dict[str, tuple[tuple[str, str], ...]]
    cue_lengths: dict[str, tuple[int, ...]]

    def __repr__(self) -> str:
        """Show the size only."""
        return f"Lexicon({len(self.names)} names)"

    def says(self, phrase: str, section: str, languages: frozenset[str]) -> bool:
        """Return whether *phrase* is in a section of one of *languages*."""
        by_section = self.cues.get(phrase)
        return by_section is not None and not languages.isdisjoint(by_section.get(section, ()))


def fold(text: str) -> str:
    """Return *text* in lower case, without accents and with one letter for variants of it."""
    if text.isascii():
        return text.lower()
    folded = text.casefold().translate(_LETTERS)
    if _KEEPS_MARKS.search(folded):
        return folded
    return without_accents(folded)


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
    word = CASED_WORD if not _KEEPS_MARKS.search(text) else UNCASED_WORD
    return " ".join(map(fold, word.findall(text)))


_NAME_SECTIONS = {
    "given": NameKind.GIVEN,
    "family": NameKind.FAMILY,
    "word_and_name": NameKind.GIVEN | NameKind.WORD_TOO,
}
_UNCASED = frozenset({"arabic", "hebrew", "devanagari"})
_CUE_SECTIONS = split_words("""
    introduction introduction_weak label title title_after greeting closing relation verb_before
    verb_after not_name word_and_name not_name_ending place_before place_after particle clitic
    common
""")
_TELLING_SECTIONS = _CUE_SECTIONS - {
    "not_name_ending",
    "word_and_name",
    "particle",
    "clitic",
    "place_before",
}


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


class _Reader:
    """Collects the sections of the languages of one script."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.names: dict[str, int] = {}
        self.local: dict[str, dict[str, int]] = {}
        self.cues: dict[str, dict[str, set[str]]] = {}
        self.telling: dict[str, set[str]] = {}
        self.endings: set[str] = set()
        self.inflections: dict[str, tuple[tuple[str, str], ...]] = {}

    def read(self, language: str) -> None:
        for section, entries in read_sections(language).items():
            if section == "name_ending":
                self.endings.update(map(fold, entries))
            elif section == "inflection":
                self.inflections[language] = tuple(_inflections(entries))
            elif section.startswith("local_"):
                kind = _NAME_SECTIONS[section.removeprefix("local_")]
                _add_names(self.local.setdefault(language, {}), entries, kind)
            else:
                self._read_words(language, section, entries)

    def _read_words(self, language: str, section: str, entries: tuple[str, ...]) -> None:
        # Where capitals tell names, a name that is a word too is listed as a name as well.
        if section in _NAME_SECTIONS and (section != "word_and_name" or self.script in _UNCASED):
            _add_names(self.names, entries, _NAME_SECTIONS[section])
        if section not in _CUE_SECTIONS:
            return
        for key in map(phrase_key, entries):
            self.cues.setdefault(key, {}).setdefault(section, set()).add(language)
            if section in _TELLING_SECTIONS and " " not in key:
                self.telling.setdefault(key, set()).add(language)


@cache
def read_lexicon(script: str) -> Lexicon:
    """Return what the languages of *script* say about people."""
    reader = _Reader(script)
    for language in SCRIPTS[script]:
        reader.read(language)
    if script == "latin":
        _add_english(reader.names)
    return Lexicon(
        reader.names,
        reader.local,
        {key: {s: frozenset(found) for s, found in by.items()} for key, by in reader.cues.items()},
        _telling(reader),
        tuple(sorted(reader.endings, key=lambda ending: -len(ending))),
        reader.inflections,
        _cue_lengths(reader.cues),
    )


def _cue_lengths(cues: Iterable[str]) -> dict[str, tuple[int, ...]]:
    lengths: dict[str, set[int]] = {}
    for *others, last in map(str.split, filter(None, cues)):
        lengths.setdefault(last, set()).add(len(others) + 1)
    return {last: tuple(sorted(found, reverse=True)) for last, found in lengths.items()}


def _telling(reader: _Reader) -> dict[str, frozenset[str]]:
    """Return the words that tell a language, without those that may be names instead."""
    return {
        word: frozenset(languages)
        for word, languages in reader.telling.items()
        if word not in reader.names or "common" in reader.cues[word]
    }


def _add_english(names: dict[str, int]) -> None:
    """Add the names of the older lists, and say which ones are English words too."""
    _add_names(names, tuple(GIVEN_NAMES), NameKind.GIVEN)
    _add_names(names, tuple(FAMILY_NAMES), NameKind.FAMILY)
    words = (ORDINARY | AMBIGUOUS_NAMES) & names.keys()
    for word in words.union(read_words("names_that_are_words")):
        names[word] = names.get(word, 0) | NameKind.ENGLISH_WORD


def _add_names(names: dict[str, int], entries: tuple[str, ...], kind: int) -> None:
    for entry in entries:
        key = fold(entry)
        names[key] = names.get(key, 0) | kind


def _inflections(entries: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each ending and what it stands for: ``owi>`` or ``ka>ek``."""
    for entry in entries:
        ending, _, stands_for = entry.partition(">")
        yield fold(ending), fold(stands_for)


def is_known_name(word: str) -> bool:
    """Return whether *word* is in a list of names, of whatever Latin language."""
    plain = fold(word)
    return plain in ALL_NAMES or plain in read_lexicon("latin").names
