"""How running English uses words, as evidence for the English model of names."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.names import usage as maker
from mnemoscope.memory.privacy.names import usage
from mnemoscope.memory.privacy.names.features import read_sequences
from mnemoscope.memory.privacy.names.words import Words


def models_of(text: str) -> list[str]:
    """Return the model that each sequence of a text is for."""
    return [each.model for each in read_sequences(text, Words())]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder as the package has it, of a few forms."""
    (tmp_path / "data").mkdir()
    for kind, forms in {
        "cluster": {"the": 1, "The": 2, "Maud": 6, "maud": 0},
        "prob": {"the": -3.0, "The": -6.0, "Maud": -11.0, "maud": -16.0, "12": -4.0},
    }.items():
        path = tmp_path / f"data/en_lexeme_{kind}.json.gz"
        path.write_bytes(gzip.compress(json.dumps(forms).encode()))
    return tmp_path


def test_the_file_is_made_of_clusters_and_probabilities(package, tmp_path):
    """Words by how they are used: paths with and without a capital, rarity, share of capitals."""
    maker.main(package, tmp_path / "made.gz")

    lines = gzip.decompress((tmp_path / "made.gz").read_bytes()).decode().splitlines()
    assert lines == ["01,1,0,1\tthe", "011,,0,8\tmaud"]


def test_names_stand_like_names():
    """Two given names share a path that a verb does not begin with."""
    table = usage.usage_table()

    assert table["michael"].capital == table["sarah"].capital
    assert table["michael"].capital[:4] != table["walked"].small[:4]
    assert table["michael"].capitals > table["mark"].capitals > table["walked"].capitals


def test_a_word_that_no_list_is_to_have_has_no_usage():
    """The model learns from such words that not all names are known."""
    known, hidden = Words()["Michael"], Words(frozenset({"michael"}))["Michael"]

    assert known.usage != usage.UNKNOWN
    assert hidden.usage == usage.UNKNOWN


def test_usage_is_told_of_english_only():
    """The other model has learned from many languages, and was never told."""
    english, *_ = read_sequences("She asked Michael about it.", Words())
    german, *_ = read_sequences("Sie hat Michael danach gefragt.", Words())

    assert any(each.startswith("cap=") for each in english.attributes[-1])
    assert not any(each.startswith("cap=") for each in german.attributes[-1])


def test_an_english_line_in_a_text_of_another_language_is_not_read_as_english():
    """Its few small words may be of that language."""
    line = "Quimby no: 4417"

    assert models_of(line) == ["names_english"]
    assert "names_english" not in models_of(f"{line}\nLa riunione comincia domani alle nove.")


def test_a_post_of_names_and_signs_is_read_as_english():
    """It has hardly a small word; who posts is no name there."""
    assert models_of("RT @zorblat Maud Quimby") == ["names_english"] * len(
        models_of("RT @zorblat Maud Quimby")
    )
