"""
A scan of files for texts of what was erased. The texts are kept in memory alone.

A store that answers that it has nothing may still have it in its files. The longest texts are
chosen: they are the least likely to be anybody else's too. A text that two customers share is found
again, and said to be found: that is a question for a person.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..queries.text_extraction import texts

MAX_TEXTS = 24
"""Texts that are looked for, at most."""

_LEAST_CHARS = 12
_MOST_CHARS = 64
_PLAIN = re.compile(rf'[^\x00-\x1f"\\]{{{_LEAST_CHARS},}}')
"""What is the same in a database and in JSON, but for letters that JSON may escape."""

_TELLING = re.compile(r"[\s\d]")
"""A sentence has spaces, an id has digits; ``last-message`` is a key that every customer has."""

_BLOCK_BYTES = 1 << 20


class ResidueTexts:
    """The longest of the texts that were offered."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._known: set[str] = set()

    def offer(self, content: Any) -> None:
        """Add the texts in *content*, of JSON types, if they are among the longest."""
        for text in texts(content):
            for piece in _PLAIN.findall(text):
                self._take(piece.strip()[:_MOST_CHARS])

    def _take(self, piece: str) -> None:
        if len(piece) < _LEAST_CHARS or piece in self._known or not _TELLING.search(piece):
            return
        self._known.add(piece)
        heapq.heappush(self._heap, (len(piece), piece))
        if len(self._heap) > MAX_TEXTS:
            self._known.discard(heapq.heappop(self._heap)[1])

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._heap)

    def needles(self) -> list[tuple[bytes, ...]]:
        """Return each as it may be written: in UTF-8, and as JSON with its letters escaped."""
        return [_written(piece) for _length, piece in self._heap]


def _written(piece: str) -> tuple[bytes, ...]:
    plain = piece.encode("utf-8", "surrogatepass")
    return tuple(dict.fromkeys((plain, json.dumps(piece)[1:-1].encode())))


def traces(needles: Iterable[tuple[bytes, ...]], paths: Iterable[Path]) -> int:
    """
    Return how many of *needles* are in the files at or under *paths*.

    Raises:
        OSError: A file cannot be read.
    """
    wanted = list(needles)
    found: set[int] = set()
    for path in files_under(paths):
        for block in _blocks(path):
            found |= {
                number
                for number, forms in enumerate(wanted)
                if number not in found and any(form in block for form in forms)
            }
    return len(found)


def files_under(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files at or under *paths*; what is gone by then is nowhere."""
    for path in paths:
        if path.is_dir():
            yield from (each for each in sorted(path.rglob("*")) if each.is_file())
        elif path.is_file():
            yield path


def _blocks(path: Path) -> Iterator[bytes]:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        before = b""
        while block := file.read(_BLOCK_BYTES):
            yield before + block
            before = block[-_BLOCK_BYTES // 256 :]
