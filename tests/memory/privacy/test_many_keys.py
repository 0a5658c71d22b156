"""Mappings with very many keys: counted names cost little, and hide nobody."""

from __future__ import annotations

import random
from pathlib import Path
from string import ascii_lowercase

import pytest
from counting import functions_of

from mnemoscope.memory import privacy
from mnemoscope.memory.privacy.detectors.pace import LongRedaction
from mnemoscope.memory.privacy.detectors.word_lists import read_lines
from mnemoscope.memory.privacy.engine.redaction import CallBound, short, within
from mnemoscope.memory.privacy.engine.value_redaction import MANY_KEYS

OURS = str(Path(privacy.__file__).parent)
LISTS = sorted(Path(privacy.__file__).parent.joinpath("detectors", "data").glob("*.txt"))
MANY = 20_000
SHAPES = ("{}", "{}_", "{}-", "my_{}-", "{}-no-", "{}_id_")
ANNOUNCING = ("account", "tax", "vat")
"""Words behind which a short number is somebody's."""


def wordings(seed: int, most: int) -> list[str]:
    """Return beginnings of keys, of words of every list that a detector reads."""
    chosen = random.Random(seed)  # noqa: S311 - the same in every run
    lists = [
        [word for line in read_lines(each) for word in line.lower().split() if _is_small(word)]
        for each in LISTS
    ]
    words = [chosen.choice(each) for each in lists if each for _ in range(most // len(lists))]
    announced = [shape.format(word) for word in ANNOUNCING for shape in SHAPES]
    return [*announced, *(chosen.choice(SHAPES).format(word) for word in words)]


def numbered(wording: str, seed: int, count: int) -> list[str]:
    """Return keys of *wording* and numbers of any length up to six digits."""
    chosen = random.Random(seed)  # noqa: S311 - as above
    numbers = (chosen.randrange(10 ** chosen.randint(1, 6)) for _ in range(count))
    return [f"{wording}{number:0{chosen.choice((1, 1, 4, 6))}}" for number in numbers]


def _is_small(word: str) -> bool:
    return len(word) < 8 and all(map(ascii_lowercase.__contains__, word))


@pytest.mark.parametrize("form", ["key-{}", "k{}", "setting_{}", "row {}"])
def test_counted_keys_are_kept(redactor, form):
    """All of them, whatever they count."""
    value = {form.format(number): number for number in range(MANY_KEYS)}

    assert redactor.begin().value(value) == value


def test_a_model_for_names_costs_counted_keys_nothing(with_model):
    """It is shown no word in small letters alone."""
    value = {f"key-{number}": number for number in range(MANY)}

    assert functions_of(lambda: with_model.begin().value(value), OURS) / MANY < 4


@pytest.mark.parametrize("form", ["key-{}", "k{}", "setting_{}"])
def test_a_counted_key_costs_a_few_functions(redactor, form):
    """Not the hundred that search a text: 300,000 keys are to be stored within a deadline."""
    value = {form.format(number): number for number in range(MANY)}

    cost = functions_of(lambda: redactor.begin().value(value), OURS)

    assert cost / MANY < 4


def test_keys_among_very_many_are_as_the_same_keys_among_few(redactor):
    """Whatever words they are of, and whichever numbers they end in."""
    for seed, wording in enumerate(wordings(7, 400)):
        keys = dict.fromkeys(numbered(wording, seed, 12), 0)
        filling = {f"key-{number}": 0 for number in range(MANY_KEYS)}

        among_many = set(redactor.begin().value(keys | filling)) - filling.keys()

        assert among_many == set(redactor.begin().value(keys)) - filling.keys()


@pytest.mark.parametrize(
    "key",
    [
        "ada@example.com",
        "key-0\nada@example.com",
        "my name is Ada Lovelace",
        "tel 0171 3456789",
        "c-4711",
    ],
)
def test_a_key_that_is_somebodys_is_found_among_very_many(redactor, key):
    """Whatever stands beside it."""
    value = {f"key-{number}": number for number in range(MANY)} | {key: -1}

    redacted = redactor.begin(known=("c-4711",)).value(value)

    assert len(redacted) == len(value)
    assert key not in redacted
    assert "key-4711" in redacted or "c-4711" not in key


def test_a_number_that_names_the_customer_is_found_among_very_many(redactor):
    """Though all others beside it are kept."""
    value = {f"key-{number}": number for number in range(MANY)}

    redacted = redactor.begin(known=("4711",)).value(value)

    assert value.keys() - redacted.keys() == {"key-4711"}


def test_values_below_very_many_keys_are_redacted(redactor):
    """A key that is kept says nothing of what stands there."""
    value = {f"key-{number}": "ada@example.com" for number in range(MANY_KEYS)}

    assert not any("@" in each for each in redactor.begin().value(value).values())


def test_very_many_keys_are_not_for_the_thread_of_a_loop(redactor):
    """It would stand still meanwhile."""
    value = {f"key-{number}": number for number in range(MANY_KEYS)}

    with pytest.raises(LongRedaction):
        redactor.begin(extent=short(None)).value(value)


def test_keys_that_need_no_search_are_no_text_of_the_call(redactor):
    """The bound is of what is searched."""
    value = {f"key-{number}": number for number in range(MANY)}

    assert redactor.begin(extent=within(CallBound(4_096))).value(value) == value
