"""A name that stands where things stand is no person, unless a word for a person is beside it."""

import pytest

from mnemoscope.memory.privacy.detectors.person_doubts import doubted
from mnemoscope.memory.privacy.detectors.person_names import is_camel_case
from mnemoscope.memory.privacy.detectors.person_support import is_doubted_reading
from mnemoscope.memory.privacy.detectors.persons import find_persons
from mnemoscope.memory.privacy.detectors.prefilter import extract_features


def names_in(text):
    return {text[each.start : each.end] for each in find_persons(text, extract_features(text))}


@pytest.mark.parametrize(
    "text",
    [
        "Today project Nora goes live and the old host is gone.",
        "It runs behind the Daphne webserver without changes.",
        "Tested with Julia 1.8 and two older releases.",
        "We flew to Charlotte and stayed for two nights.",
        "The trains run from Florence to Victoria twice a day.",
        "They settled in Houston, TX after the war.",
        '{"elevation_m": 960, "name": "Bergen"}',
        '{"name": "DebugType", "switch": "debug"}',
        "We rewrote it in Kotlin, Julia and Rust last year.",
        "The shop sells Ben & Jerry's and other ice cream.",
        "A boat to Martha's Vineyard leaves at noon.",
        "class User:\n    name: Annotated[str, 'x']",
        "The conditions are met:\n\n  * Redistributions of source code keep the notice.",
    ],
)
def test_a_name_where_things_stand_is_none(text):
    """A word for a thing or a place, a version, a list of products, a known work."""
    assert names_in(text) == set()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Dear Charlotte, the parcel is here.", "Charlotte"),
        ("My sister Victoria lives in the mountains.", "Victoria"),
        ("We asked Florence Meadows about it.", "Florence Meadows"),
        ('{"name": "Bergen", "email": "x"}', "Bergen"),
        ("I met Julia and Tobias at the station.", "Julia"),
    ],
)
def test_a_name_beside_a_word_for_a_person_stays(text, name):
    """What else has the name does not count there."""
    assert name in names_in(text)


@pytest.mark.parametrize(
    ("text", "name", "is_doubted"),
    [
        ("My puppy chewed up a Zorblax shoe.", "Zorblax", True),
        ("He grew up in Zorblax.", "Zorblax", True),
        ("Zorblax provides locks for files.", "Zorblax", True),
        ("Zorblax told us to wait.", "Zorblax", False),
        ("I had given Zorblax his address.", "Zorblax", False),
        ("Unlike the Zorblax novel, it is short.", "Zorblax", False),
        ("Zorblax keeps them; run `zorblax` first.", "Zorblax", True),
    ],
)
def test_a_strange_word_is_a_person_only_where_one_may_stand(text, name, is_doubted):
    """A language model takes any such word for a name."""
    start = text.index(name)

    assert is_doubted_reading(text, start, start + len(name)) is is_doubted


def test_items_of_a_list_are_no_phrase():
    """Known works hold no words that a comma parts."""
    text = "Invited: Harry, Potter, Ada."

    assert not is_doubted_reading(text, text.index("Harry"), text.index("Harry") + 5)


def test_what_is_no_person_is_not_doubted():
    """Other entities have evidence of their own."""
    [found] = [each._replace(entity="USERNAME") for each in find_persons(*_ada())][:1]

    assert list(doubted(_ada()[0], [found])) == [found]


def _ada():
    text = "Dear Ada, hello."
    return text, extract_features(text)


@pytest.mark.parametrize(
    ("word", "is_identifier"),
    [("DebugType", True), ("DeVito", False), ("McCoy", False), ("LeetCode", True), ("Ada", False)],
)
def test_a_prefix_of_names_has_the_capital_right_behind_it(word, is_identifier):
    """``DeVito``; not any word that begins with the same letters."""
    assert is_camel_case(word) is is_identifier
