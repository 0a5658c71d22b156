"""English words that are no names, with their inflections, and things: read on first use."""

from __future__ import annotations

from functools import cache

from .lazy_pattern import compile_later
from .word_lists import ALL_NAMES, ORDINARY, read_words

_ENDINGS = (
    ("ies", "y"),
    ("ied", "y"),
    ("ily", "y"),
    ("iest", "y"),
    ("ier", "y"),
    ("es", ""),
    ("s", ""),
    ("ed", ""),
    ("d", ""),
    ("ing", ""),
    ("ing", "e"),
    ("in", "ing"),
    ("ly", ""),
    ("er", ""),
    ("ers", ""),
    ("or", "e"),
    ("or", ""),
    ("est", ""),
    ("less", ""),
    ("ness", ""),
)
"""Endings of inflected words, and what stands there in the plain ones."""

_BY_LAST_LETTER = {last: [each for each in _ENDINGS if each[0][-1] == last] for last in "sdytrgn"}

_BEGINNINGS = compile_later("(?:re|un|pre|de|co|sub|super|over|non|auto|multi)-?(?=[a-z]{4})")
_MIN_STEM_CHARS = 3
_JOINTS = str.maketrans({"-": " ", "'": " ", "\u2019": " "})
_SHORTENED = frozenset({"s", "t", "d", "m", "ll", "re", "ve", "don", "didn", "doesn", "isn", "o"})
"""What an apostrophe leaves of words: ``don't``, ``we'll``."""


@cache
def english_words() -> frozenset[str]:
    """Return the words, in lower case: none of them is a common name too."""
    return frozenset(read_words("english_words")) - ALL_NAMES


@cache
def known_things() -> frozenset[str]:
    """Return products and places, in lower case; spaces within one are underlines."""
    lines = read_words("products_and_places")
    return frozenset(each for line in lines for each in line.split())


def is_english_word(word: str) -> bool:
    """Return whether *word*, in lower case, is English and no common name."""
    if word in ORDINARY or word in english_words():
        return True
    parts = word.translate(_JOINTS).split()
    if len(parts) > 1:
        return all(part in _SHORTENED or is_english_word(part) for part in parts)
    if word in ALL_NAMES:
        return False
    begun = _BEGINNINGS.match(word)
    forms = [*_plain_forms(word), *(_plain_forms(word[begun.end() :]) if begun else ())]
    return any(map(_is_plain_word, forms))


def _plain_forms(word: str) -> list[str]:
    found = [word]
    for ending, plain in _BY_LAST_LETTER.get(word[-1:], ()):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _MIN_STEM_CHARS:
            found.append(stem + plain)
            if stem[-1] == stem[-2] and not plain:
                found.append(stem[:-1])
    return found


def _is_plain_word(word: str) -> bool:
    return word in ORDINARY or word in english_words()
