"""US social security numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .digit_runs import is_word_near, search_digit_runs
from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures

_SSN = compile_later(r"\d(?<![\w-].)\d\d(?<!000)(?P<sep>[- .])\d{2}(?P=sep)\d{4}(?![\w]|-\d)")
_SSN_PLAIN = compile_later(r"\d(?<![\w.-].)\d{8}(?![\w]|[.-]\d)")
_SSN_WORDS = compile_later(r"\b(?:ssn|ssns|social security|itin|tin)\b", re.IGNORECASE)
_SSN_CONTEXT = frozenset({"ssn", "ssns", "security", "itin", "tin"})
_SHORTEST_SSN = 11


def find_social_security_numbers(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find US social security numbers: grouped, or nine digits beside the word."""
    for match in search_digit_runs(_SSN, text, features, _SHORTEST_SSN):
        if match["sep"] == "-" or is_word_near(_SSN_WORDS, text, match):
            yield Finding(*match.span(), "US_SSN", 0.9, "grouped 3-2-4")
    if not features.words.isdisjoint(_SSN_CONTEXT):
        for match in _SSN_PLAIN.finditer(text):
            if is_word_near(_SSN_WORDS, text, match):
                yield Finding(*match.span(), "US_SSN", 0.85, "nine digits beside the word")
