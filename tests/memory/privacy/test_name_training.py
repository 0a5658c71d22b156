"""How the models of names are learned: from texts with people, and from real ones without."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("faker", reason="dependency group names")
pytest.importorskip("spellchecker", reason="dependency group names")

from benchmarks.names import score
from benchmarks.names.nobody import names_nobody, texts
from benchmarks.names.sentences import Part, Sentence
from benchmarks.names.train import SETTINGS, labelled, learn

WHO = ("Maud Quimby", "Zorblat", "Wexley", "Farrowin")
NOT_WHO = ("Kettle", "Lantern", "Teapot", "Window")


def lessons() -> list[Sentence]:
    """Sentences in which who phones is a person, and what is sold is none."""
    people = [Sentence(f"{who} phoned us.", [(0, len(who))], "en", who) for who in WHO]
    things = [Sentence(f"We sold the {what}.", [], "en", what) for what in NOT_WHO]
    return 5 * [*people, *things]


def learned(folder: Path) -> Path:
    """Learn from the lessons, all of whose words count; return the model of their lines."""
    folder.mkdir()
    settings = {name: {**each, "feature.minfreq": 1} for name, each in SETTINGS.items()}
    learn((each for lesson in lessons() for each in labelled(lesson)), folder, settings)
    (path,) = folder.iterdir()
    return path


def test_a_learned_model_finds_what_it_was_taught(tmp_path, monkeypatch):
    """A name that it has not met is found by the words beside it."""
    tagger = score.Tagger(learned(tmp_path / "once").read_bytes())
    monkeypatch.setattr(score.find, "load", lambda _name: tagger)
    text = "Brindlemoor phoned us. We sold the Cupboard."

    found = [text[start:end] for start, end in score.found_in(text, None)]

    assert found == ["Brindlemoor"]


def test_the_same_sentences_make_the_same_model(tmp_path):
    """Byte for byte: who learns anew can tell that nothing else was learned from."""
    once, again = learned(tmp_path / "once"), learned(tmp_path / "again")

    assert again.read_bytes() == once.read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        "The Amazon EMR release version.",
        '{"description": "Number of Shards", "type": "integer"}',
        "Der Wert muss eine ganze Zahl sein.",
        "Returns the Widget of a Form.",
    ],
)
def test_text_of_packages_names_nobody(text):
    """Capitals alone name no one."""
    assert names_nobody(text)


@pytest.mark.parametrize(
    "text",
    [
        "Written by Quimby.",
        "Copyright Zorblat, 2019",
        "mail to docs@packages.example",
        "Thanks to Wexley for this.",
        "as Sarah showed us",
        "a patch of Guido Rossum",
        "Dr. Farrowin agreed",
    ],
)
def test_what_may_name_a_person_is_left_out(text):
    """Credits, addresses, titles, given names and pairs of names."""
    assert not names_nobody(text)


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder of packages as `texts.txt` names them, each with little in it."""
    talk = {
        f"talk {at}": {"messages": [[{"text": f"We saw {at} Ducks today"}]]} for at in range(3_000)
    }
    for path, text in {
        "chitchat_dataset/dataset.json": json.dumps(talk),
        "django/forms.py": 'class Form:\n    """A Form is bound to data."""\n\n    fields = []\n',
        "cfnlint/schema.json": json.dumps({"title": "A Bucket", "type": "object of any kind"}),
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    return tmp_path


def drawn(packages: Path) -> list[Sentence]:
    return list(texts(packages, Random(4)))  # noqa: S311 - the same in every run


def test_texts_of_packages_are_drawn_the_same_way_each_time(packages):
    """The random numbers decide, and nothing of the machine."""
    assert drawn(packages) == drawn(packages)


def test_texts_are_of_several_kinds_and_parts(packages):
    """Chats, JSON, documentation and code; half of the files are kept to report on."""
    found = drawn(packages)

    assert {each.key.split()[0] for each in found} == {"chat", "docs", "json", "code"}
    assert {each.part for each in found} == {Part.REPORTED, Part.WEIGHED}
    assert not any(each.spans for each in found)
