"""English words and their inflections, which are no names."""

import sys

import pytest

from mnemoscope.memory.privacy.detectors.english_words import (
    english_words,
    is_english_word,
    known_things,
)
from mnemoscope.memory.privacy.detectors.word_lists import ALL_NAMES, ORDINARY


@pytest.mark.parametrize(
    "word",
    [
        *("peanuts", "allergic", "automatically", "stopped", "hoping", "queries", "happier"),
        *("flushed", "rebalancer", "resolver", "don't", "we'll", "well-known", "gonna", "studied"),
    ],
)
def test_a_word_and_its_forms_are_english(word):
    """Plurals, tenses, adverbs, who does it, shortened and joined words."""
    assert is_english_word(word)


@pytest.mark.parametrize("word", ["okonkwo", "siobhan", "gretchen", "zorblax", "łukasz", "x", ""])
def test_a_name_is_not(word):
    """Nor what nobody has seen."""
    assert not is_english_word(word)


def test_no_common_name_is_an_english_word():
    """Whatever else it means."""
    assert english_words().isdisjoint(ALL_NAMES)
    assert not any(map(is_english_word, ALL_NAMES - ORDINARY))


def test_things_are_in_lower_case():
    """They are looked up so."""
    assert all(each == each.lower() for each in known_things())


def test_any_character_is_survived():
    """Some are letters to a pattern and none to Python, or the other way."""
    for code in range(0, sys.maxunicode, 7):
        for word in (chr(code), f"a{chr(code)}b", f"{chr(code)}-{chr(code)}"):
            is_english_word(word)
