"""Labelled text of further languages: what is learned from it, and what is kept to report on."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("faker", reason="dependency group names")
pytest.importorskip("spellchecker", reason="dependency group names")

from benchmarks.names import further

TREE = """\
# text = Ayer llamó Zorblat del Wexley.
1\tAyer\t_\tADV
2\tllamó\t_\tVERB
3\tZorblat\t_\tPROPN
4-5\tdel\t_\t_
4\tde\t_\tADP
5\tel\t_\tDET
6\tWexley\t_\tPROPN
7\t.\t_\tPUNCT
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def names_of(sentence) -> list[str]:
    return [sentence.text[start:end] for start, end in sentence.spans]


def read_tree(folder: Path, odds: dict[str, float]):
    written(folder, "UD_Spanish-GSD/es_gsd-ud-dev.conllu", TREE)
    return list(
        further.of_trees(folder, lambda text: {text.index(word): odd for word, odd in odds.items()})
    )


class TestTrees:
    """Treebanks tell proper nouns, and not whose they are."""

    def test_a_proper_noun_that_is_surely_a_name_is_one(self, tmp_path):
        """And one that surely is none is none."""
        (sentence,) = read_tree(tmp_path, {"Zorblat": 0.9, "Wexley": 0.01})
        assert names_of(sentence) == ["Zorblat"]

    def test_a_sentence_with_an_unsure_one_is_left_out(self, tmp_path):
        """Who is not told from a place would be learned as a place."""
        assert read_tree(tmp_path, {"Zorblat": 0.9, "Wexley": 0.3}) == []

    def test_another_word_is_no_name_whatever_the_model_reads(self, tmp_path):
        """This is what people have labelled."""
        (sentence,) = read_tree(tmp_path, {"Ayer": 0.9, "Zorblat": 0.9})
        assert names_of(sentence) == ["Zorblat"]

    def test_a_contraction_stands_once(self, tmp_path):
        """Its parts are rows of their own."""
        (sentence,) = read_tree(tmp_path, {"Zorblat": 0.9, "Wexley": 0.9})
        assert names_of(sentence) == ["Zorblat", "Wexley"]


class TestTags:
    """Files with a word and its tag a line."""

    def test_german_has_two_layers_of_tags(self, tmp_path):
        """A name inside that of a firm is the second one, and not counted."""
        path = written(
            tmp_path,
            "german.tsv",
            "# source\n1\tFrau\tO\tO\n2\tQuimby\tB-PER\tO\n3\tkam\tO\tO\n4\t.\tO\tO\n\n"
            "1\tKettle\tB-ORG\tB-PER\n2\tAG\tI-ORG\tO\n",
        )
        first, second = further.german(path)
        assert (first.text, names_of(first)) == ("Frau Quimby kam.", ["Quimby"])
        assert names_of(second) == []

    def test_japanese_has_no_spaces(self, tmp_path):
        """A name of two words is one."""
        path = written(tmp_path, "ja.bio", "山田\tB-PERSON\n太郎\tI-PERSON\nは\tO\n来\tO\nた\tO\n")
        (sentence,) = further.japanese(path)
        assert (sentence.text, names_of(sentence)) == ("山田太郎は来た", ["山田太郎"])

    def test_what_is_reported_on_is_not_learned_from(self, tmp_path):
        """A third of the newspapers, and the second half of debates."""
        pages = "\n\n".join(f"Seite{number} O" for number in range(9))
        for language in ("FR", "NL"):
            written(tmp_path, f"ner-corpora/enp_{language}/x.bio", pages)
        debates = "\n\n".join(f"Rede{number} O" for number in range(900))
        for language in ("de", "en", "es", "it"):
            name = f"ner-evaluation-corpus-europarl/{language}-europarl.test.conll02"
            written(tmp_path, name, debates)
        written(tmp_path, "ner-wikipedia-dataset/ner.json", "[]")
        written(tmp_path, "NER-datasets/GermEval2014/NER-de-test.tsv", "1\tTest\tO\tO\n")
        written(tmp_path, "NER-datasets/GermEval2014/NER-de-dev.tsv", "1\tDev\tO\tO\n")
        for part in ("train", "dev", "test"):
            written(tmp_path, f"UD_Japanese-GSD/stanza/{part}.bio", f"{part}\tO\n")
        written(tmp_path, "KIND/evalita-2023/WN_dev.tsv", "Notizia\tO\n")

        learned = {(each.language, each.text) for each in further.sentences(tmp_path)}
        kept = {(each.language, each.text) for _, each in further.unseen(tmp_path)}

        assert learned.isdisjoint(kept)
        assert len(kept) == 2 + 1 + 4 * 500 + 2 * 3 + 1
        assert len(learned) == 1 + 1 + 4 * 400 + 2 * 6
