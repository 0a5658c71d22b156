"""
What lists say of one word: a given name, a title, a verb that people are the subject of, a place.

The lists of all languages are read into one table, a few letters a word. What they say is evidence
that `features` hands to the model, never a decision.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from ..detectors.english_words import known_things
from ..detectors.lexicon import LANGUAGES, fold, phrase_key, read_sections
from ..detectors.name_words import SUFFIXES
from ..detectors.word_lists import (
    AMBIGUOUS_NAMES,
    FAMILY_NAMES,
    GIVEN_NAMES,
    ORDINARY,
    read_words,
)

GIVEN, FAMILY = "g", "f"
NAMES = frozenset("gfGF")
"""The letters of names: small ones of a language's own file."""

_MANY = "many"
"""The file of names that are in no language's own: a weaker sign, with capitals as letters."""

_SECTIONS = {
    "given": GIVEN,
    "local_given": GIVEN,
    "family": FAMILY,
    "local_family": FAMILY,
    "word_and_name": "w",
    "word_when_small": "y",
    "common": "k",
    "not_name": "n",
    "relation": "r",
    "label": "l",
    "title": "i",
    "title_after": "j",
    "greeting": "h",
    "closing": "c",
    "verb_after": "v",
    "verb_before": "u",
    "place_before": "p",
    "place_after": "q",
    "particle": "a",
    "place": "P",
    "word": "W",
    "introduction": "m",
    "introduction_weak": "m",
}
"""The letter of each section of a language's file."""

_CUES = frozenset("rlihcumj")
_FILES = {
    "organization_words": "b",
    "person_titles": "i",
    "speaker_roles": "d",
    "name_particles": "a",
    "names_that_are_words": "e",
    "names_that_are_places": "t",
    "not_persons": "n",
    "person_labels": "l",
    "verbs_before_person": "u",
    "words_beside_things": "x",
}
_LONGEST_CUE, _LONGEST_ENDING, _LEAST_STEM = 4, 5, 3


@cache
def word_table() -> dict[str, str]:
    """Return the letters of the lists that each word is in, by the word as `fold` has it."""
    table: dict[str, set[str]] = {}

    def add(words: Iterable[str], letter: str) -> None:
        for word in words:
            table.setdefault(fold(word), set()).add(letter)

    for language in LANGUAGES:
        for section, letter in _SECTIONS.items():
            entries = read_sections(language).get(section, ())
            own = letter.upper() if language == _MANY else letter
            add((each for each in entries if " " not in each), own)
    add(GIVEN_NAMES, GIVEN)
    add(FAMILY_NAMES, FAMILY)
    add(AMBIGUOUS_NAMES, "e")
    add(ORDINARY, "o")
    add(SUFFIXES, "s")
    add((word for each in known_things() for word in (each, *each.split("_"))), "t")
    for name, letter in _FILES.items():
        add((word for line in read_words(name) for word in line.split()), letter)
    return {word: "".join(sorted(letters)) for word, letters in table.items()}


@cache
def cue_table() -> dict[str, str]:
    """Return the letters of the cues of several words, by the cue as `phrase_key` has it."""
    table: dict[str, set[str]] = {}
    for language in LANGUAGES:
        for section, letter in _SECTIONS.items():
            if letter in _CUES:
                for entry in read_sections(language).get(section, ()):
                    if " " in (key := phrase_key(entry)):
                        table.setdefault(key, set()).add(letter)
    return {cue: "".join(sorted(letters)) for cue, letters in table.items()}


@cache
def last_words_of_cues() -> frozenset[str]:
    """Return the words that end a cue of several words."""
    return frozenset(cue.rpartition(" ")[2] for cue in cue_table())


def cue_at_end(words: list[str]) -> str:
    """Return the letters of the longest cue that ends *words*; empty if none does."""
    if not words or words[-1] not in last_words_of_cues():
        return ""
    for count in range(min(_LONGEST_CUE, len(words)), 1, -1):
        if letters := cue_table().get(" ".join(words[-count:])):
            return letters
    return ""


@cache
def _inflections() -> dict[str, tuple[str, ...]]:
    """Return what each ending of an inflected name may stand for."""
    endings: dict[str, set[str]] = {}
    for language in LANGUAGES:
        for entry in read_sections(language).get("inflection", ()):
            ending, _, plain = entry.partition(">")
            endings.setdefault(fold(ending), set()).add(fold(plain))
    return {ending: tuple(sorted(plain)) for ending, plain in endings.items()}


def plain_kinds(word: str) -> str:
    """Return the letters of the names that *word*, folded, may be an inflected form of."""
    table, found = word_table(), ""
    for length in range(1, min(_LONGEST_ENDING, len(word) - _LEAST_STEM) + 1):
        for plain in _inflections().get(word[-length:], ()):
            kinds = table.get(word[:-length] + plain, "")
            found += GIVEN if GIVEN in kinds and GIVEN not in found else ""
            found += FAMILY if FAMILY in kinds and FAMILY not in found else ""
            found += "P" if "P" in kinds and "P" not in found else ""
    return found


@cache
def small_names() -> frozenset[str]:
    """Return the given names that may be meant where they are written small."""
    return frozenset(
        word
        for word, kinds in word_table().items()
        if GIVEN in kinds and not set(kinds) & set("oyk") and len(word) >= _LEAST_STEM
    )
