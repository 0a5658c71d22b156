"""Searches limited to the runs of digits of a text, faster than a search at every digit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .prefilter import TextFeatures

_CHARS_BEFORE, _CHARS_AFTER = 60, 20


def search_digit_runs(
    pattern: re.Pattern[str], text: str, features: TextFeatures, min_chars: int
) -> Iterator[re.Match[str]]:
    """Yield matches of *pattern*: digits throughout, at least *min_chars*, two of lookahead."""
    for start, end in features.digit_runs:
        if end - start >= min_chars:
            yield from pattern.finditer(text, start, end + 2)


def is_word_near(words: re.Pattern[str], text: str, match: re.Match[str]) -> bool:
    """Return whether one of *words* stands shortly before or after *match*."""
    start, end = match.span()
    before = words.search(text, max(0, start - _CHARS_BEFORE), start)
    return bool(before or words.search(text, end, end + _CHARS_AFTER))
