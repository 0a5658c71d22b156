"""What the conversations promise to those who measure identity on them."""

import pytest

from tests.privacy.corpora.document import Half
from tests.privacy.corpora.languages import LANGUAGES as ALL_LANGUAGES
from tests.privacy.corpora.languages.language_data import language_data
from tests.privacy.corpora.people import LANGUAGES, conversation_data, conversations


@pytest.fixture(scope="module", params=Half)
def told(request):
    return list(conversations(request.param))


def test_the_same_seed_makes_the_same_conversations():
    """Figures of two days are figures of the same conversations."""
    once = list(conversations(Half.DEVELOPMENT, seed=2))
    assert once == list(conversations(Half.DEVELOPMENT, seed=2))
    assert once != list(conversations(Half.DEVELOPMENT, seed=3))


def test_everybody_is_named_whenever_they_are_named(told):
    """No name of a conversation's people stands where no mention is."""
    for conversation in told:
        rest = list(conversation.text)
        for mention in conversation.mentions:
            rest[mention.start : mention.end] = "_" * (mention.end - mention.start)
        words = set("".join(rest).split())
        for mention in conversation.mentions:
            name = conversation.text[mention.start : mention.end]
            assert name not in words, conversation.template


def test_a_name_means_one_person(told):
    """No two people of a conversation are called the same, whatever the case of the letters."""
    for conversation in told:
        meant: dict[str, str] = {}
        for mention in conversation.mentions:
            name = conversation.text[mention.start : mention.end].casefold()
            assert meant.setdefault(name, mention.person) == mention.person, conversation.template


def test_people_are_named_in_more_than_one_way(told):
    """It is not enough to replace equal words by equal words."""
    for conversation in told:
        ways: dict[str, set[str]] = {}
        for mention in conversation.mentions:
            name = conversation.text[mention.start : mention.end]
            ways.setdefault(mention.person, set()).add(name)
        assert max(map(len, ways.values())) > 1, conversation.template
        assert len(ways) > 1, conversation.template


def test_there_are_speakers_and_people_who_are_spoken_of(told):
    """Both are measured, each by its own goal."""
    spoken_of = 0
    for conversation in told:
        people = {mention.person for mention in conversation.mentions}
        assert conversation.speakers <= people
        spoken_of += len(people - conversation.speakers)
    assert spoken_of > 50
    assert sum(len(conversation.speakers) for conversation in told) > 50


def test_halves_share_no_name_and_no_template():
    """Nor does a conversation of one half use a name of the other half's texts."""
    names: dict[Half, set[str]] = {half: set() for half in Half}
    texts: dict[Half, set[str]] = {half: set() for half in Half}
    for half in Half:
        for language in LANGUAGES:
            data = conversation_data(language, half)
            texts[half] |= {template.text for template in data.templates}
            for key in ("given_f", "given_m", "family"):
                names[half] |= set("~".join(data.values[key]).casefold().split("~"))
        for language in ALL_LANGUAGES:
            values = language_data(language, half).values
            for key in ("given_f", "given_m", "family"):
                names[half] |= set("~".join(values[key]).casefold().split("~"))
    assert not names[Half.DEVELOPMENT] & names[Half.EVALUATION]
    assert not texts[Half.DEVELOPMENT] & texts[Half.EVALUATION]
