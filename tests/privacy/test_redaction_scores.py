"""What is counted where redaction is measured, and how its floors are held."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import redaction_floors
from tests.kit.redaction_scores import Found, Score, tokens_in
from tests.privacy.corpora.document import Document, Span

ROOT = Path(__file__).parents[2]
TEXT = "Rosalind Quimby wrote from Oslo to Thaddeus Vole."
#       0        9            22   27   32 35       44


def document(*spans, text=TEXT):
    labelled = tuple(Span(*each) for each in spans)
    return Document(text, labelled, language="en", genre="chat", template="one")


NAMES = document((0, 15, "PERSON"), (27, 31, "LOCATION"), (35, 48, "PERSON"))


def scored(of, *found):
    score = Score()
    score.add_labelled(of, [Found(*each) for each in found])
    return score


def value(score, figure, row="all"):
    share = score.share(figure, row)
    return share and share.value


def test_a_span_is_found_when_all_of_it_is_replaced():
    """By whatever entity; half a name is none."""
    score = scored(NAMES, (0, 15, "USERNAME"), (35, 43, "PERSON"))

    assert value(score, "recall") == 0.5
    assert value(score, "person recall", "language en") == 0.5
    assert value(score, "recall", "entity PERSON") == 0.5
    assert value(score, "leak") == 1


def test_precision_is_of_replaced_characters():
    """White space is not counted: whether a name is replaced in parts or as a whole is alike."""
    in_parts = scored(NAMES, (0, 8, "PERSON"), (9, 15, "PERSON"), (16, 21, "PERSON"))
    whole = scored(NAMES, (0, 15, "PERSON"), (16, 21, "PERSON"))

    assert value(in_parts, "precision") == value(whole, "precision") == 14 / 19
    assert value(in_parts, "person precision") == 2 / 3


def test_quasi_identifiers_are_neither_asked_for_nor_punished():
    """Found as one, or labelled as one: nothing is missed, nothing is wrong."""
    score = scored(NAMES, (0, 15, "PERSON"), (16, 21, "DATE_TIME"), (27, 31, "PERSON"))

    assert value(score, "precision") == 1
    assert score.share("recall", "entity LOCATION") is None
    assert value(score, "person precision") == 0.5


def test_what_is_found_where_there_is_nothing_is_told_for_a_thousand_tokens():
    """For each genre; what is in other languages than English has a row of its own."""
    score = Score()
    score.add_negative(document(text="one two three four"), [Found(0, 3, "PERSON")])
    score.add_negative(document(text="five six seven eight"), [])
    german = Document("acht neun", (), language="de", genre="chat", template="two")
    score.add_negative(german, [Found(0, 4, "LOCATION")])

    assert value(score, "false", "chat") == 125
    assert value(score, "false", "chat, other languages") == 0
    assert score.wrong == [("chat", "PERSON", "one")]


def test_random_values_are_told_for_100_000_of_a_kind():
    """One that anything is found in counts once; what is found as a quasi-identifier does not."""
    score = Score()
    for number in range(4):
        of = Document("2b1f", (), language="", genre="hashes", template=str(number))
        found = [Found(0, 2, "PHONE_NUMBER"), Found(3, 4, "SECRET")] if number == 0 else []
        score.add_random_value(of, [*found, Found(0, 4, "DATE_TIME")])

    assert value(score, "values", "hashes") == pytest.approx(25_000)


def test_tokens_are_counted_where_nothing_stands_between_words():
    """Two Chinese characters are a token, as two Latin words are two."""
    assert tokens_in("the weather is fine") == 4
    assert tokens_in("天气很好") == 3


def test_the_interval_holds_the_figure():
    """It is drawn from the templates: one that differs widens it."""
    score = Score()
    for number in range(20):
        each = Document(TEXT, NAMES.spans, language="en", genre="", template=str(number))
        score.add_labelled(each, [Found(0, 48, "PERSON")] if number % 2 else [])
    share = score.share("recall", "all")

    assert share.low < share.value == 0.5 < share.high


def test_a_figure_below_its_floor_is_a_miss():
    """A point below what was measured is none, and of false finds more are worse."""
    score = scored(NAMES, (0, 15, "PERSON"))
    floors = {"recall: all": 0.51, "person recall: all": 0.5, "precision: all": 0.99}

    assert redaction_floors.misses(score, floors) == ["recall: all: wanted 0.510, got 0.500"]
    assert redaction_floors.misses(score, {"false: logs": 1.0}) == [
        "false: logs: wanted 1.000, got nothing"
    ]


def test_floors_are_a_point_below_what_was_measured():
    """And false finds half a one above; of what rests on few spans there is none."""
    score = Score()
    for number in range(60):
        each = Document(TEXT, NAMES.spans, language="en", genre="", template=str(number))
        score.add_labelled(each, [Found(0, 15, "PERSON")])
        score.add_negative(document(text="word " * 100), [Found(0, 4, "PERSON")])
    floors = redaction_floors.floors_of(score)

    assert floors["recall: all"] == 0.49
    assert floors["false: chat"] == 10.5
    assert redaction_floors.misses(score, floors) == []
    assert redaction_floors.floors_of(scored(NAMES)) == {}


@pytest.mark.parametrize(
    ("new", "is_lower"),
    [
        ({"recall: all": 0.9, "false: logs": 2.0}, False),
        ({"recall: all": 0.95, "false: logs": 1.0, "false: code": 9.0}, False),
        ({"recall: all": 0.89, "false: logs": 2.0}, True),
        ({"recall: all": 0.9, "false: logs": 2.1}, True),
        ({"recall: all": 0.9}, True),
    ],
)
def test_a_floor_is_lower_where_less_is_asked(new, is_lower):
    """A smaller share, more false finds, or a figure that is not there any more."""
    old = {"none": {"recall: all": 0.9, "false: logs": 2.0}, "other": {"recall: all": 1.0}}

    assert bool(redaction_floors.lowered(old, {"none": new})) is is_lower


def test_nobody_is_shown_the_evaluation_half():
    """What rules are judged by is not looked at while they are written."""
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.privacy_figures", "--show", "PERSON"],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 2
    assert "development" in ended.stderr
