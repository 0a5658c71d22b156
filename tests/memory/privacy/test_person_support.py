"""Names that need a second evidence: a product, a work and a town have the names of people."""

import pytest

NAMES = ("Hugo", "Rebecca", "Adelaide", "Doris", "Gerrit", "Emma")

THINGS = (
    "Starting {} tonight, popcorn is ready.",
    "Currently reading: {}. No spoilers!",
    "Try {} or something else.",
    "Supported: {}, Windows Server, Alpine.",
    "Dinner was nice. Could be {}?",
    '{{"flags": ["Beta", "{}"]}}',
    "Tools by Stihl and coffee by {}, as ever.",
    "She prefers {} or something like it.",
)
PEOPLE = (
    "Thanks for the ride, {}!",
    "{}, the keys are on the table.",
    "A mail from {} about it.",
    "Lunch with {} on Friday.",
    "{} is running late.",
    "Wow, {}! What a view.",
    "Yeah, {}, it went well.",
    "{} wants a second vote.",
    "Please call {} if you see her.",
    "The kids stayed at {}'s place.",
    "{}",
)


PARTS = (
    "Plugins: Zorbal, Frimp, {}, Quontle and Drax.",
    "A contract with Vondrel & {}.",
    "[{}] started, {}::run()",
)

SAID = ("Mom says Ibuprofen is fine.", "I miss Bridgerton so much.", "Dad said Tabasco, not salt.")


def _redacted(redactor, text):
    return redactor.begin().text(text)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("frame", THINGS)
def test_a_name_that_nothing_says_is_a_persons_is_kept(redactor, frame, name):
    """A word that a list of names has stays, where a thing may stand and no person is told of."""
    text = frame.format(name)

    assert _redacted(redactor, text) == text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("frame", PEOPLE)
def test_a_name_is_replaced_where_its_sentence_says_so(redactor, frame, name):
    """Who is spoken to, does something, or stands behind a word for company."""
    assert name not in _redacted(redactor, frame.format(name))


@pytest.mark.parametrize("frame", THINGS[:3])
@pytest.mark.parametrize("other", ["Mail ada@quimbymail.example.", "Dear Rosalind Quimby,"])
def test_a_name_is_replaced_beside_other_personal_data(redactor, frame, other):
    """A text that is about a person has more of that person's names."""
    assert "Hugo" not in _redacted(redactor, f"{other}\n{frame.format('Hugo')}")


@pytest.mark.parametrize("text", SAID)
def test_what_somebody_says_or_misses_is_no_name(redactor, text):
    """Behind *says* stands who speaks only where a quote goes before it; to miss is no title."""
    assert _redacted(redactor, text) == text


def test_who_speaks_stands_behind_a_quote(redactor):
    """A rare name is found there."""
    assert "Xiloptera" not in _redacted(redactor, "“No idea,” said Xiloptera.")


def test_a_name_is_as_weak_as_the_one_it_repeats(redactor):
    """A word twice in a text is no second evidence; once with a person's verb is, for both."""
    twice = "Try Hugo or something else. Starting Hugo tonight."

    assert _redacted(redactor, twice) == twice
    assert "Hugo" not in _redacted(redactor, f"{twice} Hugo wants a coffee.")


@pytest.mark.parametrize("name", NAMES)
def test_a_word_that_is_a_thing_once_is_no_name_elsewhere(redactor, name):
    """A text means the same by a word each time: what has a version is not who was fast."""
    text = f"We moved to {name} 1.8 in March. {name} was fast enough for that."

    assert _redacted(redactor, text) == text


@pytest.mark.parametrize("name", NAMES[:3])
@pytest.mark.parametrize("frame", PARTS)
def test_a_part_of_a_list_a_firm_or_code_is_kept_beside_personal_data(redactor, frame, name):
    """Where the text is about a person, too."""
    text = frame.replace("{}", name)

    assert _redacted(redactor, f"Mail ada@quimbymail.example.\n{text}").endswith(text)
