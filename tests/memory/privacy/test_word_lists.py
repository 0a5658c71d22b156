"""The word lists: what a reader of the files and the detectors rely on."""

from pathlib import Path

import pytest

from mnemoscope.memory.privacy.detectors import word_lists

DATA = Path(word_lists.__file__).with_name("data")
NAMES = sorted(path.stem for path in DATA.glob("*.txt"))
CODE = "".join(path.read_text() for path in DATA.parents[1].rglob("*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_a_list_says_where_it_is_from(name):
    """In the comment at its head."""
    lines = (DATA / f"{name}.txt").read_text("utf-8").splitlines()
    head = " ".join(line for line in lines if line.startswith("#"))

    assert "Origin:" in head


@pytest.mark.parametrize("name", NAMES)
def test_entries_are_lower_case_and_stand_once(name):
    """Texts are compared in lower case; a second entry would be a mistake."""
    words = word_lists.read_words(name)

    assert words
    assert len(set(words)) == len(words)
    assert all(word == word.lower().strip() for word in words)


@pytest.mark.parametrize("name", NAMES)
def test_every_list_is_used(name):
    """A file that no detector reads would only look as if it did something."""
    assert f'"{name}"' in CODE or f"'{name}'" in CODE


def test_a_list_is_read_once():
    """However many detectors ask for it."""
    assert word_lists.read_words("nicknames") is word_lists.read_words("nicknames")
