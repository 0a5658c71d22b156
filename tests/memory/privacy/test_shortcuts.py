"""Detectors that a shortcut leaves out would have found nothing."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemoscope.memory.privacy.detectors import disguises
from mnemoscope.memory.privacy.detectors.credentials import CREDENTIAL_WORDS
from mnemoscope.memory.privacy.detectors.known_identifiers import KnownIdentifiers
from mnemoscope.memory.privacy.detectors.normalized_text import (
    NormalizedText,
    may_be_disguised,
    normalize_text,
)
from mnemoscope.memory.privacy.detectors.prefilter import extract_features
from mnemoscope.memory.privacy.engine.gate import _PLAIN_WORDS, DETECTORS
from mnemoscope.memory.privacy.names import find
from mnemoscope.memory.privacy.names.tagger import load

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
@example("-BEGIN RSA PRIVATE KEY")
@example("login eyJhbGci.e30")
@example("user quimby_home")
def test_detectors_that_are_not_asked_have_no_clue(redactor, text):
    """Each of them waits for a clue, and none of those is there."""
    features = extract_features(text)
    asked = redactor._engine._gate.choose(text, features)

    assert asked == [each for each in DETECTORS if each.applies(text, features)]


@given(texts)
@example("call me on five five five, five five five five")
@example("one two three four five six seven")
@example("write to ada at example dot com")
@example("ada &#64; home")
def test_a_text_that_is_no_disguise_is_its_own_view(text):
    """What says that nothing in it is disguised is never wrong."""
    if not may_be_disguised(text, extract_features(text)):
        assert normalize_text(text) == NormalizedText(text)


def test_an_ordinary_text_is_no_disguise():
    """Else the shortcut would be none."""
    text = "user is allergic to peanuts"

    assert not may_be_disguised(text, extract_features(text))


def test_in_words_alone_few_are_asked(redactor):
    """Else the shortcut would be none."""
    text = "she likes green tea"

    asked = redactor._engine._gate.choose(text, extract_features(text))

    assert {each.name for each in asked} <= {each.name for each in _PLAIN_WORDS}


@pytest.mark.parametrize("text", sorted(CREDENTIAL_WORDS)[:5])
def test_a_word_for_a_secret_is_a_clue(redactor, text):
    """Whatever else there is not."""
    asked = redactor._engine._gate.choose(text, extract_features(text))

    assert "AssignedSecret" in {each.name for each in asked}


@given(texts)
@example("my name is ada")
@example("alice likes tea")
@example("Will likes tea")
@example("mr quxley")
@example("Phone\nAda Quxley")
def test_a_text_that_says_no_name_has_none(text):
    """The model of names, asked all the same, agrees."""
    features = extract_features(text)
    if not find.may_hold_person(text, features):
        assert list(find.find_persons(text, features)) == []


def test_an_ordinary_text_says_no_name():
    """Else the shortcut would be none."""
    text = "She likes green tea with milk"

    assert not find.may_hold_person(text, extract_features(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("vive en c/ Mayor 12 desde 2020", "c/ Mayor 12"),
        ("casa na r. das Flores 12", "r. das Flores 12"),
        ("h no 12, Rajpur Road, Dehradun 248001", "h no 12, Rajpur Road, Dehradun 248001"),
        ("please pay to A/C 1234567890", "1234567890"),
    ],
)
def test_a_letter_counts_where_it_stands_as_an_abbreviation_does(redactor, text, found):
    """Though most digests hold the same letter."""
    spans = redactor._engine.find(text, KnownIdentifiers(()))

    assert [text[each.start : each.end] for each in spans] == [found]


@pytest.mark.parametrize("end", ["", " Melanie called."])
def test_a_name_that_stands_once_is_found_as_one_that_is_repeated(redactor, end):
    """Where it need not be looked for again, nothing else changes."""
    text = "Dear Melanie Quxley, the invoice is paid." + end
    spans = redactor._engine.find(text, KnownIdentifiers(()))

    assert {text[each.start : each.end] for each in spans} == {"Melanie Quxley"} | set(
        end.split()[:1]
    )


def test_preparing_reads_models_and_lists_of_names(make):
    """No text with a name waits for them."""
    load.cache_clear()

    make().prepare()

    assert load.cache_info().currsize == 3


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
