"""
Write how words are used: ``python -m benchmarks.names.usage PACKAGE FOLDER``.

PACKAGE is the folder of spacy-lookups-data (MIT), which has Brown clusters and probabilities of
many forms of words in each language. FOLDER is where the models are.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path

from mnemoscope.memory.privacy.names.usage import USED

_MOST_WORDS, _MOST_OF_CLUSTERS = 60_000, 25_000
"""How many words there are, and of how many the cluster tells what they are: not of rare ones."""

_SHARES = (0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.93)
"""Bounds between the shares of capitals that are told from each other."""

_FIRST_RANKS = 100
_RAREST = -99.0


def write_usage(package: Path, language: str, out: Path) -> None:
    """Write the file of a language."""
    clusters = _read(package / f"data/{language}_lexeme_cluster.json.gz")
    chances = _read(package / f"data/{language}_lexeme_prob.json.gz")

    def path(form: str) -> str:
        cluster = int(clusters.get(form, 0))
        return f"{cluster:b}"[::-1] if cluster else ""  # the first bit is the lowest

    def chance(form: str) -> float:
        return math.exp(chances.get(form, _RAREST))

    words: dict[str, float] = defaultdict(float)
    for form in chances:
        if form.isalpha():
            words[form.lower()] += chance(form)
    lines: dict[str, list[str]] = defaultdict(list)
    frequent = sorted(words, key=lambda each: (-words[each], each))[:_MOST_WORDS]
    for rank, word in enumerate(frequent):
        capital, small = chance(word.title()), chance(word)
        share = bisect_right(_SHARES, capital / (capital + small)) if capital + small else 0
        frequency = int(math.log2(rank / _FIRST_RANKS + 1))
        paths = (path(word.title()), path(word)) if rank < _MOST_OF_CLUSTERS else ("?", "?")
        lines[f"{','.join(paths)},{frequency},{share}"].append(word)
    text = "".join(f"{usage}\t{' '.join(sorted(lines[usage]))}\n" for usage in sorted(lines))
    out.write_bytes(gzip.compress(text.encode(), mtime=0))


def _read(path: Path) -> dict[str, float]:
    return json.loads(gzip.decompress(path.read_bytes()))


if __name__ == "__main__":
    package, folder = map(Path, sys.argv[1:])
    for each in USED:
        write_usage(package, each, folder / f"usage_{each}.txt.gz")
