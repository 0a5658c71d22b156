"""Seed phrases of wallets: twelve to twenty-four words of one list, the last with a check sum."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache

from ..finding import Finding
from ..lazy_pattern import compile_later
from ..prefilter import TextFeatures, read_words_of
from ..word_lists import read_words

_LENGTHS = (24, 21, 18, 15, 12)
LEAST_DIFFERENT = 9
"""Different words in a phrase: twelve random ones repeat at most one or two."""

_BETWEEN = compile_later(r"[\s,;|\"'\[\]]*(?:\(?\d{1,2}[.):]?[ \t]+)?[\s\"']*|[ ]?-[ ]?")
_ANY_WORD = compile_later(r"[^\W\d_]+")
_ANNOUNCED = compile_later(
    r"(?<![^\W_])(?:seed|mnemonic|recovery|backup|secret phrase|wallet|passphrase|phrase|words"
    r"|wiederherstellung\w*|récupération|recuperación|"
    r"frase semilla|semilla|мнемони\w*|сид-?фраз\w*)",
    re.IGNORECASE,
)
_SHORTEST_RUN = bytes([True]) * _LENGTHS[-1]
_CHARS_BEFORE = 100
_MOST_BETWEEN = 16
_LONGEST_RUN = 40
"""Words in a row beyond which they are a list of words, in which some check sum holds by chance."""


def may_hold_seed_phrase(_text: str, features: TextFeatures) -> bool:
    """Return whether a text has enough of the words."""
    if len(features.words) < LEAST_DIFFERENT:
        return False
    return len(_positions().keys() & features.words) >= LEAST_DIFFERENT


def find_seed_phrases(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find seed phrases: by their check sum, or where a word says so."""
    are_known = bytes(map(_positions().__contains__, read_words_of(text)))
    if _SHORTEST_RUN not in are_known:
        return
    for run in _runs(text):
        phrases = list(_phrases(run)) if len(run) <= _LONGEST_RUN else []
        for phrase in phrases:
            span = phrase[0].start(), phrase[-1].end()
            yield Finding(*span, "SECRET", 0.95, "seed phrase by its check sum")
        start = run[0].start()
        if not phrases and _ANNOUNCED.search(text, max(0, start - _CHARS_BEFORE), run[2].end()):
            yield Finding(start, run[-1].end(), "SECRET", 0.8, "seed phrase, as the text says")


def _runs(text: str) -> Iterator[list[re.Match[str]]]:
    """Yield twelve and more words of the list with nothing but numbers between them."""
    known, run = _positions(), list[re.Match[str]]()
    for match in _ANY_WORD.finditer(text):
        if match.group().lower() in known and (not run or _is_joined(text, run[-1], match)):
            run.append(match)
            continue
        if len(run) >= _LENGTHS[-1]:
            yield run
        run = [match] if match.group().lower() in known else []
    if len(run) >= _LENGTHS[-1]:
        yield run


def _is_joined(text: str, before: re.Match[str], match: re.Match[str]) -> bool:
    start, end = before.end(), match.start()
    return end - start <= _MOST_BETWEEN and _BETWEEN.fullmatch(text, start, end) is not None


def _phrases(run: list[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    start = 0
    while len(run) - start >= _LENGTHS[-1]:
        for length in _LENGTHS:
            phrase = run[start : start + length]
            if len(phrase) == length and _has_checksum([each.group().lower() for each in phrase]):
                yield phrase
                start += length - 1
                break
        start += 1


def _has_checksum(words: list[str]) -> bool:
    known = _positions()
    bits = "".join(f"{known[word]:011b}" for word in words)
    check_bits = len(words) // 3
    entropy, check = bits[:-check_bits], bits[-check_bits:]
    digest = hashlib.sha256(int(entropy, 2).to_bytes(len(entropy) // 8, "big")).digest()
    return f"{digest[0]:08b}"[:check_bits] == check


@cache
def _positions() -> dict[str, int]:
    return {word: position for position, word in enumerate(read_words("seed_words"))}
