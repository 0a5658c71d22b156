"""What is not asked would have found nothing."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemoscope.memory.redaction import persons
from mnemoscope.memory.redaction.clues import clues_of
from mnemoscope.memory.redaction.credentials import CREDENTIAL_CLUES
from mnemoscope.memory.redaction.engine import _QUIET, DETECTORS
from mnemoscope.memory.redaction.views import _SPELT, _is_suspicious

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
    clues = clues_of(text)
    asked = redactor._engine._worth_asking(text, clues)

    assert [find for gate, find in DETECTORS if gate(text, clues)] == [
        find for gate, find in asked if gate(text, clues)
    ]


def test_in_words_alone_few_are_asked(redactor):
    """Else the shortcut would be none."""
    text = "she likes green tea"

    assert redactor._engine._worth_asking(text, clues_of(text)) is _QUIET


@pytest.mark.parametrize("text", sorted(CREDENTIAL_CLUES)[:5])
def test_a_word_for_a_secret_is_a_clue(redactor, text):
    """Whatever else there is not."""
    assert redactor._engine._worth_asking(text, clues_of(text)) is not _QUIET


@given(texts)
@example("my name is ada")
@example("alice likes tea")
@example("Will likes tea")
@example("mr quxley")
@example("Phone\nAda Quxley")
def test_a_text_that_says_no_name_has_none(text):
    """Every rule for names, asked by itself, agrees."""
    clues = clues_of(text)
    if not persons._says_nothing(text, clues):
        return
    found = [
        *persons._said(text, clues),
        *persons._capitalised(text, clues),
        *persons._in_lists_of_names(text, clues),
        *persons._speakers(text),
        *persons._on_lines(text, clues),
    ]

    assert found == []


def test_an_ordinary_text_says_no_name():
    """Else the shortcut would be none."""
    text = "She likes green tea with milk"

    assert persons._says_nothing(text, clues_of(text))


@pytest.mark.parametrize(
    "text", ["a (at) b", "a [dot] b", "a { @", "a dot b", "a DOT b", "a( AT", "ada [Dot]"]
)
def test_what_is_spelt_out_is_suspicious(text):
    """In every way that the pattern knows."""
    assert _SPELT.search(text)
    assert _is_suspicious(text)
