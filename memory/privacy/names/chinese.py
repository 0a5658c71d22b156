"""
Chinese as jieba cuts it into words: where in a word each character stands, and of what kind it is.

The extra `ner-zh` brings jieba and OpenCC. jieba's dictionary is of simplified characters, so a
text is simplified for it.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ..detectors.lazy_pattern import compile_later
from ..detectors.lexicon import read_sections

PACKAGES = ("jieba", "opencc")
_OTHER_SCRIPTS = compile_later("[\u3040-\u30ff\u0e00-\u0e7f\uac00-\ud7a3]")
_AROUND = (-2, -1, 0, 1, 2)


class Segmenter:
    """Cuts runs of characters into words. It takes a second to make."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # jieba's own patterns have escapes that are none
            jieba: Any = import_module("jieba")
            jieba.setLogLevel(logging.WARNING)
            posseg: Any = import_module("jieba.posseg")
            opencc: Any = import_module("opencc")
        words = jieba.Tokenizer()
        # Otherwise it reads a cache from the folder for temporary files, where anybody can write.
        words.FREQ, words.total = words.gen_pfdict(words.get_dict_file())
        words.initialized = True
        self._cut = posseg.POSTokenizer(words).cut
        self._simplify = cache(opencc.OpenCC("t2s").convert)

    def marks(self, run: str) -> Iterator[list[str]]:
        """Yield the attributes of each character of a *run*."""
        kinds = list(self._kinds(run))
        last = len(kinds) - 1
        for at in range(len(kinds)):
            near = [(each, at + each) for each in _AROUND if 0 <= at + each <= last]
            before = kinds[at - 1] if at else "#"
            after = kinds[at + 1] if at < last else "#"
            yield [
                *(f"j{distance}={kinds[place]}" for distance, place in near),
                f"jj={before}|{kinds[at]}|{after}",
            ]

    def _kinds(self, run: str) -> Iterator[str]:
        simple = "".join(map(self._simplified, run))
        for word in self._cut(simple):
            size = len(word.word)
            for place in range(size):
                where = (
                    "S" if size == 1 else "B" if not place else "E" if place == size - 1 else "M"
                )
                yield f"{word.flag}{where}"

    def _simplified(self, char: str) -> str:
        simple: str = self._simplify(char)
        return simple if len(simple) == 1 else char


def is_chinese(text: str) -> bool:
    """Return whether *text*, which has such characters, has none of another script's."""
    return not _OTHER_SCRIPTS.search(text)


@cache
def _titles() -> tuple[str, ...]:
    return tuple(read_sections("zh").get("title_after", ()))


def end_before_title(text: str, start: int, end: int) -> int:
    """Return the *end* of a name in *text* without the title written behind it."""
    name = text[start:end]
    titles = (each for each in _titles() if name.endswith(each) and len(each) < len(name))
    return end - len(max(titles, key=len, default=""))


@cache
def load() -> Segmenter | None:
    """Return the segmenter of this process. None: what it needs is not installed."""
    return Segmenter() if all(map(find_spec, PACKAGES)) else None
