"""How running text uses words, as evidence for the models of names."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.names import usage as maker
from mnemoscope.memory.privacy.names import features, usage


def models_of(text: str) -> list[str]:
    """Return the model that each sequence of a text is for."""
    return [each.model for each in features.read_sequences(text, features.Words())]


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
    maker.write_usage(package, "en", tmp_path / "made.gz")

    lines = gzip.decompress((tmp_path / "made.gz").read_bytes()).decode().splitlines()
    assert lines == ["01,1,0,1\tthe", "011,,0,8\tmaud"]


def test_names_stand_like_names():
    """Two given names share a path that a verb does not begin with."""
    table = usage.usage_table("en")

    assert table["michael"].capital == table["sarah"].capital
    assert table["michael"].capital[:4] != table["walked"].small[:4]
    assert table["michael"].capitals > table["mark"].capitals > table["walked"].capitals


def test_a_word_that_no_list_is_to_have_has_no_usage():
    """The model learns from such words that not all names are known."""
    known, hidden = features.Words()["Michael"], features.Words(frozenset({"michael"}))["Michael"]

    assert known.used_in("en").usage != usage.UNKNOWN
    assert hidden.used_in("en").usage == usage.UNKNOWN


@pytest.mark.parametrize(
    ("text", "tongue"),
    [
        ("She asked Michael about it.", ""),
        ("Sie hat Michael danach gefragt, aber er wusste es nicht.", "de"),
    ],
)
def test_usage_is_told_in_the_language_of_a_text(text, tongue):
    """A word stands like other words in each language."""
    sequence, *_ = features.read_sequences(text, features.Words())

    assert any(each.startswith("cap=") for each in sequence.attributes[-1])
    assert any(each.startswith(f"{tongue}C8=") for each in sequence.attributes[-1])


def test_usage_is_told_in_no_other_language():
    """There is no table of Italian words; what another language makes of them says nothing."""
    sequence, *_ = features.read_sequences(
        "Ha chiesto a Michael del biglietto per il treno.", features.Words()
    )

    assert not any(each.startswith("cap=") for each in sequence.attributes[-1])


def test_german_nouns_stand_otherwise_than_names():
    """Both have capitals."""
    table = usage.usage_table("de")

    assert table["schmidt"].capital[:6] == table["meier"].capital[:6]
    assert table["schmidt"].capital[:6] != table["marktplatz"].capital[:6]


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
