"""
Prefilter: cheap features of a text that decide which detectors can find anything in it.

Most memories hold no personal data. Each detector has a precondition without which it cannot match
(an ``@``, a run of digits, one of its words), so a text that meets none costs microseconds.
"""

from __future__ import annotations

from typing import NamedTuple

from .lazy_pattern import compile_later

_WORD = compile_later(r"[^\W\d_]+")
_DIGIT = compile_later(r"\d")
# For ASCII texts: less than half the time of _WORD.
_FOLDED = {code: chr(code).lower() if chr(code).isalpha() else " " for code in range(128)}
_ASCII_DIGIT = compile_later(r"[0-9]")
_LONG = 16
LONG_WORD = compile_later(rf"[A-Za-z0-9+/_-]{{{_LONG}}}")
_DIGITS = compile_later(r"\d(?:[\s().,/x-]{0,3}\d){4}")
_NUMBER = compile_later(r"\d[\d ().\-/\u00a0]{5,}+")
_BEYOND_LATIN = compile_later(r"[\u0370-\u1dff\u2e80-\uffff]")


class TextFeatures(NamedTuple):
    """
    Cheap features of a text.

    Attributes:
        words: Its words, in lower case.
        has_digit_run: Whether it has five digits close together: identifying numbers have more.
        has_digit: Whether it has any digit.
        has_long_word: Whether it has sixteen letters or digits in a row, as keys, wallets and
            base64 have.
        digit_runs: Spans of digits and the characters that group them, if `has_digit_run`. To
            search these alone is faster than to search at every digit of the text.
        has_other_script: Whether it may have letters that are not Latin.
    """

    words: frozenset[str]
    has_digit_run: bool
    has_digit: bool
    has_long_word: bool
    digit_runs: tuple[tuple[int, int], ...] = ()
    has_other_script: bool = False

    def __repr__(self) -> str:
        """Show the count only: the words may be personal data."""
        return f"TextFeatures({len(self.words)} words)"


def extract_features(text: str) -> TextFeatures:
    """Return the features of *text*."""
    is_ascii = text.isascii()
    has_digit = (_ASCII_DIGIT if is_ascii else _DIGIT).search(text) is not None
    digits = has_digit and _DIGITS.search(text) is not None
    numbers = tuple(match.span() for match in _NUMBER.finditer(text)) if digits else ()
    words = frozenset(read_words_of(text))
    has_joint = "-" in text or "/" in text or "_" in text or "+" in text
    return TextFeatures(
        words,
        digits,
        has_digit,
        # Of letters alone, a quarter of the time.
        max(map(len, words), default=0) >= _LONG
        if is_ascii and not (has_digit or has_joint)
        else LONG_WORD.search(text) is not None,
        numbers,
        not is_ascii and _BEYOND_LATIN.search(text) is not None,
    )


def read_words_of(text: str) -> list[str]:
    """Return the words of *text* in order, in lower case."""
    return text.translate(_FOLDED).split() if text.isascii() else _WORD.findall(text.lower())


def lower_case(text: str) -> str:
    """Return *text* in lower case, as long as it is: offsets in it are offsets in *text*."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(char.lower()[0] for char in text)
