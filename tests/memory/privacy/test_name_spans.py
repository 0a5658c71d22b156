"""The part of a found name that is replaced."""

import pytest

from mnemoscope.memory.privacy.detectors.finding import BY_MODEL, Finding
from mnemoscope.memory.privacy.engine.name_spans import clean_names


def replaced(text, found, why="a rule", entity="PERSON"):
    """Return *text* as it is after *found* in it was cleaned and replaced."""
    start = text.index(found)
    names = clean_names(Finding(start, start + len(found), entity, 0.8, why), text)
    for each in sorted(names, reverse=True):
        text = f"{text[: each.start]}<P>{text[each.end :]}"
    return text


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("Ask Melanie's brother", "Melanie's", "Ask <P>'s brother"),
        ("Ask James\u2019 brother", "James\u2019", "Ask <P>\u2019 brother"),
        ("Ask Dr. Miller", "Dr. Miller", "Ask Dr. <P>"),
        ("Ask Mrs Ann Miller-Jones.", "Mrs Ann Miller-Jones.", "Ask Mrs <P>."),
        ("Hey Sam, hi", "Hey Sam,", "Hey <P>, hi"),
        ("Yep Jon", "Yep Jon", "Yep <P>"),
        ("Hey Sam. Can't wait", "Sam. Can't", "Hey <P>. Can't wait"),
        ("Thanks Jon. Setbacks happen", "Jon. Setbacks", "Thanks <P>. Setbacks happen"),
        ("Hi Jon. Melanie is here", "Jon. Melanie", "Hi <P>. <P> is here"),
        ("Jon: Gonna go", "Jon: Gonna", "<P>: Gonna go"),
        ("Gotcha, Jon!", "Gotcha, Jon", "Gotcha, <P>!"),
        ("John F. Kennedy spoke", "John F. Kennedy", "<P> spoke"),
        ("Ask J. R. R. Tolkien", "J. R. R. Tolkien", "Ask <P>"),
        ("Martin Luther King Jr. spoke", "Martin Luther King Jr.", "<P> spoke"),
        ("Ask Melani about it", "Mela", "Ask <P> about it"),
        ("Ask Will Young", "Will Young", "Ask <P>"),
        ("Ann\nRegards", "Ann\nRegards", "<P>\nRegards"),
        ("Doctor", "Doctor", "<P>"),
    ],
)
def test_the_name_is_replaced_and_what_stands_around_it_stays(text, found, expected):
    """Titles, greetings, ``'s``, punctuation and further sentences; and no half word is left."""
    assert replaced(text, found) == expected


def test_a_name_in_a_further_sentence_that_a_model_read_is_one(make):
    """It may know names that no list has."""
    text, found = "I met Jon. Zbylut came too", "Jon. Zbylut"

    assert replaced(text, found, BY_MODEL) == "I met <P>. <P> came too"
    assert replaced(text, found) == "I met <P>. Zbylut came too"


@pytest.mark.parametrize("word", ["Wow", "Congrats", "Nah"])
def test_an_interjection_alone_is_no_name(word):
    """It is how most of what is said in a chat begins."""
    assert replaced(f"{word}, great", word) == f"{word}, great"


def test_nothing_else_is_cleaned():
    """An address may hold anything."""
    text = "at Dr. Miller's. Inn"

    assert replaced(text, "Dr. Miller's. Inn", entity="STREET_ADDRESS") == "at <P>"


def test_a_name_behind_an_escape_leaves_the_escape_whole(redactor):
    """A JSON text is one afterwards, too."""
    assert redactor.begin().text(r'{"a": "x\nMelanie said"}') == r'{"a": "x\n<PERSON> said"}'
