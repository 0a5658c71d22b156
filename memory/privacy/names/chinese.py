"""
Chinese as jieba cuts it into words, and of what kind each is.

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


class ChineseSegmenter:
    """Cuts runs of characters into words. It takes a second to make."""

    model = "names_chinese"

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

    def kinds(self, run: str) -> Iterator[tuple[str, int]]:
        """Yield the kind of each word of a *run*, and its size in characters."""
        simple = "".join(map(self._simplified, run))
        for word in self._cut(simple):
            yield word.flag, len(word.word)

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
def load() -> ChineseSegmenter | None:
    """Return the segmenter of this process. None: what it needs is not installed."""
    return ChineseSegmenter() if all(map(find_spec, PACKAGES)) else None
