"""
Word lists of the detectors: files in ``data/``, one entry a line, comments behind ``#``.

Each is read once, when the first redactor imports the detectors that need it; importing
`mnemoscope.memory` reads none.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_DATA = files(__package__ or __name__).joinpath("data")


@cache
def read_words(name: str) -> tuple[str, ...]:
    """Return the entries of ``data/<name>.txt``, in the file's order."""
    return read_lines(_DATA.joinpath(f"{name}.txt"))


def read_lines(file: Traversable) -> tuple[str, ...]:
    """Return the lines of *file* that are neither empty nor comments."""
    lines = file.read_text("utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def alternatives(name: str) -> str:
    """Return the entries of ``data/<name>.txt`` as the alternatives of a regular expression."""
    return "|".join(read_words(name))


def split_words(words: str) -> frozenset[str]:
    """Return the words of a text: a short list reads better so than as strings."""
    return frozenset(words.split())


ORDINARY = frozenset((*read_words("ordinary_words"), *read_words("technical_words")))
"""Lower-case words that are not taken for a person's name on their own."""

GIVEN_NAMES = frozenset(read_words("given_names"))
"""Given names that count on their own, capitalised or in a text without capitals."""

FAMILY_NAMES = frozenset(read_words("family_names"))
"""Family names that count where they are capitalised."""

AMBIGUOUS_NAMES = frozenset(read_words("ambiguous_names"))
"""Names that are also words or places: they count only next to another name."""

ALL_NAMES = GIVEN_NAMES | FAMILY_NAMES | AMBIGUOUS_NAMES
