"""Detectors that a shortcut leaves out would have found nothing."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemoscope.memory.privacy.detectors import disguises, persons
from mnemoscope.memory.privacy.detectors.credentials import CREDENTIAL_WORDS
from mnemoscope.memory.privacy.detectors.prefilter import extract_features
from mnemoscope.memory.privacy.engine.engine import _WORDS_ONLY, DETECTORS

WORDS = (
    *("tea", "green", "the", "likes", "prefers", "said", "my name is", "call me", "Dear", "mr"),
    *("Ada", "ada", "Lovelace", "Will", "will", "Jansson", "Paris", "Bo", "wife", "corner"),
    *("street", "phone", "password", "hunter", "J.", "and", "'s", "Mrs", "Quxley", "né", "@home"),
    *("antidisestablishmentarianism", "sk-proj-abcdefghijklmnop", "7", "2024", "://", "(at)"),
)
JOINTS = (" ", ", ", ". ", "\n", ": ", "=", "-")

texts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(JOINTS)), max_size=8).map(
    lambda parts: "".join(word + joint for word, joint in parts)
)


@given(texts)
@example("the corner of green and tea")
@example("ada@home")
def test_detectors_that_are_not_asked_have_no_clue(redactor, text):
    """Each of them waits for a clue, and none of those is there."""
    features = extract_features(text)
    asked = redactor._engine._applicable_detectors(text, features)

    assert [find for applies, find in DETECTORS if applies(text, features)] == [
        find for applies, find in asked if applies(text, features)
    ]


def test_in_words_alone_few_are_asked(redactor):
    """Else the shortcut would be none."""
    text = "she likes green tea"

    assert redactor._engine._applicable_detectors(text, extract_features(text)) is _WORDS_ONLY


@pytest.mark.parametrize("text", sorted(CREDENTIAL_WORDS)[:5])
def test_a_word_for_a_secret_is_a_clue(redactor, text):
    """Whatever else there is not."""
    assert redactor._engine._applicable_detectors(text, extract_features(text)) is not _WORDS_ONLY


@given(texts)
@example("my name is ada")
@example("alice likes tea")
@example("Will likes tea")
@example("mr quxley")
@example("Phone\nAda Quxley")
def test_a_text_that_says_no_name_has_none(text):
    """Every rule for names, asked by itself, agrees."""
    features = extract_features(text)
    if not persons._has_no_evidence(text, features):
        return
    found = [
        *persons._announced(text, features),
        *persons._capitalised(text, features),
        *persons._in_name_lists(text, features),
        *persons._speakers(text),
        *persons._on_own_lines(text, features),
    ]

    assert found == []


def test_an_ordinary_text_says_no_name():
    """Else the shortcut would be none."""
    text = "She likes green tea with milk"

    assert persons._has_no_evidence(text, extract_features(text))


PIECES = (
    *("ada", "lovelace", ".", "@", " at ", " AT ", "(at)", "[dot]", " dot ", "-at-", "_at_"),
    *("example", "com", " ", " arroba ", " punto ", "艾特", "点", " et ", " nokta ", "\n", "{at}"),
)
pieces = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)


@given(pieces)
@example("ada at example dot com")
@example("ada@example.com (at) home")
def test_an_address_that_nobody_looks_for_is_none(text):
    """What says that a text spells no address is never wrong."""
    if not disguises._may_spell_address(text, text.lower()):
        assert list(disguises._spelled_addresses(text)) == []
