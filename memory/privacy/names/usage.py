"""
How words are used in running English: what each stands like, how often it is written, and how.

The file is `benchmarks/names/usage.py`'s. What it says is evidence for the English model.
"""

from __future__ import annotations

import gzip
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Usage(NamedTuple):
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


UNKNOWN = Usage("?", "?", "?", "?")


@cache
def usage_table() -> dict[str, Usage]:
    """Return the usage of frequent words, by the word in lower case."""
    packed = files(__package__ or __name__).joinpath("data", "usage_english.txt.gz").read_bytes()
    table: dict[str, Usage] = {}
    for line in gzip.decompress(packed).decode("utf-8").splitlines():
        used, _, words = line.partition("\t")
        usage = Usage(*used.split(","))
        table.update(dict.fromkeys(words.split(), usage))
    return table
