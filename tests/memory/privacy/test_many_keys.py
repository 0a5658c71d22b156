"""Values with very many keys and short texts: most cost little, and none hides anybody."""

from __future__ import annotations

import random
from pathlib import Path
from string import ascii_lowercase

import pytest

from mnemoscope.memory import privacy
from mnemoscope.memory.privacy.detectors.identifiers.table import read_kinds
from mnemoscope.memory.privacy.detectors.known_identifiers import KnownIdentifiers
from mnemoscope.memory.privacy.detectors.pace import LongRedaction
from mnemoscope.memory.privacy.detectors.word_lists import read_lines
from mnemoscope.memory.privacy.engine.engine import Engine
from mnemoscope.memory.privacy.engine.plain_texts import find_plain
from mnemoscope.memory.privacy.engine.redaction import MANY_TEXTS, CallBound, short, within
from tests.kit.call_costs import functions_of

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


MANY_OF_ONE = 80
"""As many keys of one wording as are told by samples."""

NOBODY = KnownIdentifiers(())
PERSONAL = (
    *("ada@example.com", "+49 171 3456789", "(212) 555-0187", "4556 7375 8689 9855", "536-90-4399"),
    *("DE89 3704 0044 0532 0130 00", "192.168.4.17", "9.8.7.6", "2001:db8::8a2e:370:7334"),
    *(
        "12 High Street",
        "Hauptstr. 5",
        "1HGCM82633A004352",
        "ab:cd:ef:fa:ce:1d",
        "RSSMRA85T10A562S",
    ),
    *("user grace_h", "password hunter2", "sk-proj-abcdef1234567890ABCDEF", "github.com/grace-1"),
    *("bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "YWRhIGxvdmVsYWNlIGhlcmU", "Anna Smith"),
    *("ada at example dot com", "five five five one two three four", "anna", "Bearer abc123def456"),
)
VALUES = ("1234", "1a2b3c4d5e", "ab-1234-c5", "a123-b45", "1234-c-567", "hunter2x9", "grace_h")
"""Of somebody, where the word before says so."""

JOINTS = ("", "", "_", " ", ".", ",", ":", "/", "-", "_", " ", "-", ", ", ": ")


class Pieces:
    """Makes short texts of what detectors look for, of what looks like it, and of neither."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - the same in every run
        self.lists = [
            [word for word in each.read_text("utf-8").replace("|", " ").split() if word.isascii()]
            for each in LISTS
        ]
        self.lists.append([word for kind in read_kinds() for word in kind.plain_words])
        self.lists = [each for each in self.lists if each]

    def text(self) -> str:
        """Return a text of up to six pieces."""
        count = self.random.randint(1, 6)
        pieces = (self.piece() + self.random.choice(JOINTS) for _ in range(count))
        return "".join(pieces)[: self.random.choice((99, -1))]

    def piece(self) -> str:
        """Return a word, a number, some digits of a code, or something personal."""
        chosen, choice = self.random, self.random.random()
        if choice < 0.3:
            return "".join(chosen.choices("0123456789", k=chosen.choice((1, 1, 2, 3, 4, 5, 6, 9))))
        if choice < 0.4:
            return "".join(chosen.choices("0123456789abcdef", k=chosen.choice((4, 8, 12, 16, 32))))
        if choice < 0.5:
            return "".join(chosen.choices(ascii_lowercase, k=chosen.choice((1, 2, 5, 9, 18))))
        word = chosen.choice(PERSONAL if choice < 0.6 else chosen.choice(self.lists))
        if choice > 0.8:
            word += chosen.choice((":", ": ", "-")) + chosen.choice(VALUES)
        write = chosen.choice((str, str, str.lower, str.lower, str.capitalize, str.upper))
        return write(word)


FORMS = {
    "words": lambda _, word: f"{word()} {word()}",
    "snake case": lambda _, word: f"{word()}_{word()}",
    "camel case": lambda _, word: f"{word()}{word().capitalize()}{word().capitalize()}",
    "paths": lambda _, word: f"/srv/{word()}/{word()}.txt",
    "addresses of pages": lambda number, word: f"https://example.com/{word()}/{number % 1_000}",
    "codes": lambda number, _: f"{number * 2_654_435_761 % 2**32:08x}",
    "digests": lambda number, _: f"{number * 2_654_435_761**9 % 2**128:032x}",
    "times": lambda number, _: f"2024-01-02T{number // 60:02}:{number % 60:02}:07Z",
    "measures": lambda number, _: f"{number % 97}.{number:06}",
    "pairs": lambda number, _: f"{number % 977},{number % 991}",
}
"""Texts of nobody's, by a number and a maker of words."""


@pytest.mark.parametrize("form", FORMS)
def test_of_very_many_texts_of_any_form_few_are_searched(redactor, monkeypatch, form):
    """As keys or as values: 300,000 of them are to be stored within a deadline."""
    chosen = random.Random(3)  # noqa: S311 - the same in every run

    def word() -> str:
        return "".join(chosen.choices(("bu", "ge", "zo", "fi", "ku", "pa", "xo"), k=3))

    texts = list(dict.fromkeys(FORMS[form](number, word) for number in range(1_200)))
    searched: list[str] = []
    find = Engine._find
    monkeypatch.setattr(Engine, "_find", lambda *given: searched.append(given[1]) or find(*given))

    for value in (dict.fromkeys(texts, 0), {"rows": [{"at": text} for text in texts]}):
        assert redactor.begin().value(value) == value

    assert len(searched) < 0.2 * 2 * len(texts)


@pytest.mark.parametrize("seed", range(3))
def test_what_needs_no_search_would_have_been_clean(redactor, with_model, seed):
    """Text by text, of whatever pieces: no quality is lost."""
    pieces = Pieces(seed)
    texts = {pieces.text() for _ in range(6_000)}

    plain = {*find_plain([*texts], with_model=False)} & texts

    assert len(plain) > 600
    assert [text for text in plain if redactor._engine.find(text, NOBODY)] == []
    small = {*find_plain([*texts], with_model=True)} & texts
    assert [text for text in small if with_model._engine.find(text, NOBODY)] == []


def test_a_seed_phrase_among_very_many_is_searched():
    """Its words are ordinary ones: that there are so many of them is all that a key shows."""
    phrase = "legal winner thank year wave sausage worth useful legal winner thank yellow"

    assert phrase not in {*find_plain([phrase, "green tea"], with_model=False)}


@pytest.mark.long
def test_texts_among_very_many_are_as_the_same_texts_alone(redactor):
    """Keys, values and what stands deeper, with a customer who is named."""
    pieces = Pieces(11)
    texts = list(dict.fromkeys(pieces.text() for _ in range(1_050)))

    def redacted(value):
        return redactor.begin(tenant="acme", known=("grace-77", "Tilly Vex")).value(value)

    texts += ["mail from tilly", "grace-77", "grace_77", "vex"]
    together = redacted({"texts": texts, "rows": [{"of": text} for text in texts]})

    alone = [redacted({"text": text})["text"] for text in texts]
    assert together["texts"] == alone
    assert [row["of"] for row in together["rows"]] == alone


@pytest.mark.parametrize("form", ["key-{}", "k{}", "setting_{}", "row {}"])
def test_counted_keys_are_kept(redactor, form):
    """All of them, whatever they count."""
    value = {form.format(number): number for number in range(MANY_TEXTS)}

    assert redactor.begin().value(value) == value


def test_a_model_for_names_costs_counted_keys_nothing(with_model):
    """It is shown no word in small letters alone."""
    value = {f"key-{number}": number for number in range(MANY)}

    assert functions_of(lambda: with_model.begin().value(value), OURS) / MANY < 4


@pytest.mark.parametrize("form", ["key-{}", "k{}", "setting_{}", "key_{:06}_ab"])
def test_a_counted_key_costs_a_few_functions(redactor, form):
    """Not the hundred that search a text: 300,000 keys are to be stored within a deadline."""
    value = {form.format(number): number for number in range(MANY)}

    cost = functions_of(lambda: redactor.begin().value(value), OURS)

    assert cost / MANY < 4


def test_keys_among_very_many_are_as_the_same_keys_among_few(redactor):
    """Whatever words they are of, and whichever numbers they end in."""
    for seed, wording in enumerate(wordings(7, 150)):
        keys = dict.fromkeys(numbered(wording, seed, 12), 0)
        filling = {f"key-{number}": 0 for number in range(MANY_TEXTS)}

        among_many = set(redactor.begin().value(keys | filling)) - filling.keys()

        assert among_many == set(redactor.begin().value(keys)) - filling.keys()


@pytest.mark.parametrize("behind", ["_ab", "_no", "-main_st", "_account"])
def test_numbered_keys_with_an_ending_are_as_each_alone(redactor, behind):
    """Whether the words before the number announce somebody's, or the words behind it do."""
    for seed, wording in enumerate(wordings(11, 20)):
        keys = [f"{key}{behind}" for key in numbered(wording, seed, MANY_OF_ONE)]
        filling = {f"key-{number}": 0 for number in range(MANY_TEXTS)}

        among_many = set(redactor.begin().value(dict.fromkeys(keys, 0) | filling))

        assert among_many - filling.keys() == {redactor.begin().label(key) for key in keys}


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
    value = {f"key-{number}": "ada@example.com" for number in range(MANY_TEXTS)}

    assert not any("@" in each for each in redactor.begin().value(value).values())


def test_very_many_keys_are_not_for_the_thread_of_a_loop(redactor):
    """It would stand still meanwhile."""
    value = {f"key-{number}": number for number in range(MANY_TEXTS)}

    with pytest.raises(LongRedaction):
        redactor.begin(extent=short(None)).value(value)


def test_keys_that_need_no_search_are_no_text_of_the_call(redactor):
    """The bound is of what is searched."""
    value = {f"key-{number}": number for number in range(MANY)}

    assert redactor.begin(extent=within(CallBound(4_096))).value(value) == value
