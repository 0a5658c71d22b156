"""
How words are used in running text: what each stands like, how often it is written, and how.

The files are `benchmarks/names/usage.py`'s, of English and German. What they say is evidence for
the models.
"""

from __future__ import annotations

import gzip
from functools import cache, cached_property
from importlib.resources import files
from typing import NamedTuple

ENGLISH, GERMAN = "en", "de"
USED = (ENGLISH, GERMAN)
"""
The languages whose usage is known.

There is a file of Spanish too. With it more of the finds in clinical notes are names, .99 for .94,
and an eighth of the names in other texts are missed.
"""

_PATHS, _PATHS_BESIDE = (4, 6, 8, 10), (4, 6, 10)
"""Lengths of beginnings of paths: the shorter, the more words have it."""

_PATHS_OF_PAIRS, _PATHS_OF_THREE = 8, 6


class WordUsage(NamedTuple):
    """
    How a word is used, whatever its capitals.

    Attributes:
        capital: The Brown cluster of its form with a capital, as a path of bits; empty if none.
        small: That of its small form.
        frequency: A digit; the larger, the rarer.
        capitals: A digit; the larger, the more often it has a capital.
    """

    capital: str
    small: str
    frequency: str
    capitals: str


UNKNOWN = WordUsage("?", "?", "?", "?")


class UsedWord:
    """
    A word of running text in one language, and what its usage tells.

    Args:
        text: The word, a number or a sign.
        shape: Its capitals.
        name: The kind of name or thing that lists say it is, in one letter.
        language: What the text is in.
        is_hidden: It is taken to be in no list.

    Attributes:
        usage: How it is used; of a sign nothing is known, and of a rare word.
        path: The words that it stands like, as a path of bits; a sign is its own.
    """

    def __init__(self, text: str, shape: str, name: str, language: str, *, is_hidden: bool) -> None:
        table = usage_table(language)
        self.usage = UNKNOWN if is_hidden else table.get(text.lower(), UNKNOWN)
        first = text[:1]
        if first.isalpha():
            self.path = self.usage.capital if first.isupper() else self.usage.small
        else:
            self.path = f".{first}"
        self._shape, self._name = shape, name
        # Paths of two languages have nothing in common.
        self._tongue = "" if language == ENGLISH else language

    @cached_property
    def own(self) -> list[str]:
        """Attributes of the word itself."""
        path, tongue = self.path, self._tongue
        rare, cap = self.usage.frequency, self.usage.capitals
        return [
            *(f"{tongue}C{size}={path[:size]}" for size in _PATHS),
            f"{tongue}C={path}",
            f"{tongue}L={self.usage.small}",
            f"cap={cap}",
            f"cap{self._shape}={cap}",
            f"cap{self._name}={cap}",
            f"fr={rare}",
            f"fr{rare}={cap}",
        ]

    @cached_property
    def before(self) -> list[str]:
        """Attributes of the word behind it."""
        return self._beside("b")

    @cached_property
    def after(self) -> list[str]:
        """Attributes of the word in front of it."""
        return self._beside("a")

    def among(self, before: UsedWord, after: UsedWord, *, is_begin: bool) -> list[str]:
        """Return attributes of the word and of its neighbours together."""
        tongue, pairs, three = self._tongue, _PATHS_OF_PAIRS, _PATHS_OF_THREE
        found = [
            f"{tongue}Cpair{before.path[:pairs]}>{after.path[:pairs]}",
            f"{tongue}Ctri{before.path[:three]}|{self.path[:three]}|{after.path[:three]}",
        ]
        if is_begin:
            capitals, small = self.usage.capitals, self.usage.small[:three]
            found += [f"Cbegin{capitals}", f"{tongue}Cbegin{self._name}{capitals}{small}"]
        return found

    def _beside(self, side: str) -> list[str]:
        path, tongue = self.path, self._tongue
        paths = (f"{tongue}{side}C{size}={path[:size]}" for size in _PATHS_BESIDE)
        cap = f"{side}cap{self._shape}={self.usage.capitals}"
        return [*paths, f"{tongue}{side}C={path}", cap]


@cache
def usage_table(language: str) -> dict[str, WordUsage]:
    """Return the usage of a language's frequent words, by the word in lower case."""
    file = files(__package__ or __name__).joinpath("data", f"usage_{language}.txt.gz")
    table: dict[str, WordUsage] = {}
    for line in gzip.decompress(file.read_bytes()).decode("utf-8").splitlines():
        used, _, words = line.partition("\t")
        usage = WordUsage(*used.split(","))
        table.update(dict.fromkeys(words.split(), usage))
    return table
