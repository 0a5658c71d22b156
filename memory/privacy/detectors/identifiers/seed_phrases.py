"""Seed phrases of wallets: twelve to twenty-four words of one list, the last with a check sum."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain

from ..finding import Finding
from ..lazy_pattern import compile_later
from ..prefilter import TextFeatures, read_words_of
from ..word_lists import read_words

LEAST_DIFFERENT = 9
"""Different words in a phrase: twelve random ones repeat at most one or two."""

_WORD = compile_later(r"[^\W\d_]+")
_RUN = compile_later(r"(?<!x)x{12,40}(?!x)")
"""A mark for each word of a phrase. More are a list, in which some check sum holds by chance."""

_CODE = compile_later(r"[_=({<]")
_ANNOUNCED = compile_later(
    r"seed|mnemonic|recovery|backup|wallet|phrase|wiederherstellung|récupération|recuperación"
    r"|semilla|мнемони|сид-?фраз",
    re.IGNORECASE,
)
_CHARS_BEFORE = 100


def may_hold_seed_phrase(text: str, features: TextFeatures) -> bool:
    """Return whether a text has enough of the words, and so many of them in a row."""
    listed, words = _places(), features.words
    if len(words) < LEAST_DIFFERENT or len(listed.keys() & words) < LEAST_DIFFERENT:
        return False
    marks = "".join(["x" if each in listed else " " for each in read_words_of(text)])
    return _RUN.search(marks) is not None


def find_seed_phrases(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find rows of the words with a check sum, or of which the text says what they are."""
    words = list(_WORD.finditer(text))
    places = [_places().get(each.group().lower()) for each in words]
    for run in _RUN.finditer("".join(" " if each is None else "x" for each in places)):
        start, end = words[run.start()].start(), words[run.end() - 1].end()
        if _CODE.search(text, start, end):
            continue
        announced_by = words[run.start() + 2].end()  # "seed" and "phrase" are of the list too
        is_announced = _ANNOUNCED.search(text, max(0, start - _CHARS_BEFORE), announced_by)
        if is_announced or _has_phrase([each or 0 for each in places[slice(*run.span())]]):
            yield Finding(start, end, "SECRET", 0.95, "seed phrase of a wallet")


def _has_phrase(places: Sequence[int]) -> bool:
    return any(
        _has_check_sum(places[first : first + length])
        for length in range(12, 25, 3)
        for first in range(len(places) - length + 1)
    )


def _has_check_sum(places: Sequence[int]) -> bool:
    bits, number = len(places) // 3, 0
    for place in places:
        number = number << 11 | place
    digest = hashlib.sha256((number >> bits).to_bytes(4 * bits, "big")).digest()
    return digest[0] >> (8 - bits) == number & ((1 << bits) - 1)


@cache
def _places() -> dict[str, int]:
    words = chain.from_iterable(map(str.split, read_words("seed_words")))
    return {word: place for place, word in enumerate(words)}
