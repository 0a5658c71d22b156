"""
Japanese as Sudachi cuts it into words, and of what kind each is.

The extra `ner-ja` brings SudachiPy and a dictionary, which knows surnames and given names.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ....telemetry.process.fork_lock import ForkLock
from ..detectors.lazy_pattern import compile_later

PACKAGES = ("sudachipy", "sudachidict_core")
_KANA = compile_later("[\u3040-\u30fa\u30fc-\u30ff]")
_UNTOLD = "*"
_DEPTH = 4
"""Of the parts that tell a word's kind: behind them comes how it is inflected."""


class JapaneseSegmenter:
    """
    Cuts runs of characters into words. Its dictionary takes a fraction of a second to open.

    Thread-safe: the library's object refuses a second thread, so one at a time.
    """

    model = "names_japanese"

    def __init__(self) -> None:
        self._lock = ForkLock()
        sudachi: Any = import_module("sudachipy")
        self._cut = sudachi.Dictionary(dict="core").create(mode=sudachi.SplitMode.C).tokenize

    def kinds(self, run: str) -> Iterator[tuple[str, int]]:
        """Yield the kind of each word of a *run*, and its size in characters."""
        with self._lock:
            words = self._cut(run)
        for word in words:
            kind = "-".join(each for each in word.part_of_speech()[:_DEPTH] if each != _UNTOLD)
            yield kind, word.end() - word.begin()


def is_japanese(text: str) -> bool:
    """Return whether *text* has characters that only Japanese has."""
    return bool(_KANA.search(text))


@cache
def load() -> JapaneseSegmenter | None:
    """Return the segmenter of this process. None: what it needs is not installed."""
    return JapaneseSegmenter() if all(map(find_spec, PACKAGES)) else None
