"""What a value beside a word for a secret looks like: random, a placeholder, a name, code."""

from __future__ import annotations

import re
from itertools import pairwise

from .lazy_pattern import compile_later
from .word_lists import ORDINARY, read_words

_NOT_ALNUM = compile_later(r"[^0-9A-Za-z]+")
_KINDS = str.maketrans(
    {
        **{chr(code): "9" for code in range(0x30, 0x3A)},
        **{chr(code): "A" for code in range(0x41, 0x5B)},
        **{chr(code): "a" for code in range(0x61, 0x7B)},
    }
)
_CHANGES = ("9a", "9A", "a9", "A9", "aA")
_FEWEST_CHARS, _FEWEST_DIFFERENT = 16, 8
_LEAST_CHANGES, _MOST_SEPARATORS = 0.25, 0.2
_FEWEST_LETTERS, _LEAST_CASE_CHANGES = 8, 0.3

PLACEHOLDER_WORDS = frozenset(read_words("placeholder_words"))
_PLACEHOLDER = compile_later(
    r"[$%@#]?\{{1,2}[^{}]*\}{0,2}|\$\(.*|%[\w()]*[%sd]?|\$\w+|@\w+@|<.*|\[.*|\(.*|__\w+__"
    r"|[*\u2022\u25cf.:\-_#?]+|[\w.-]*x{8}.*|(?:%[sdr][:@/]?)+|(.)\1{3,}"
    r"|(?:sk|pk|key|ghp|api|token|secret)?[-_]?[xX*\u2022.]{4,}.{0,4}"
    r"|(?:(?:my|your|the|insert|some|test|dummy|fake|sample|example|enter|add|put|put|set"
    r"|use)[-_ ]?)+"
    r"(?:\w+[-_ ]?){0,4}(?:key|token|secret|password|passwd|pass|pwd|here|value|code"
    r"|pin)(?:[-_ ]?here)?",
    re.IGNORECASE,
)
_CODE = compile_later(
    r"[A-Za-z_][\w.]*[(\[{].*|\{+.*"
    r"|(?:os|self|settings|config|process|env|request|req|cls|this|args|kwargs|ctx"
    r"|options|opts|props"
    r"|params|data|body|secrets|vars|var|local|module|github|inputs|import)[.?]\w.*"
    r"|\w+\[.*|\w+->.*|\w+::.*|&\w+.*|!\w+.*"
    r"|optional\b.*|https?:.*|[A-Z][A-Za-z]*(?:Error|Exception)\b.*",
    re.IGNORECASE,
)
_WORDS_ONLY = compile_later(r"[^\W\d]+(?:[._/-][^\W\d]+)*[.!?:]*")
"""An identifier, a path of names or a word: no value that a machine made."""

_NAMED_PLACE = compile_later(
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[./~]?[\w.-]*(?:/[\w.-]+)+\.[a-z]{1,5}"
)
"""Name of an environment variable, or path of a file."""


def is_random(value: str) -> bool:
    """
    Return whether *value* looks as if a machine had drawn its characters.

    Letters and digits alternate in what is drawn, and seldom do in words, names and numbers. A
    capital at the head of a word is no change, for so begin the words of names in camel case.
    """
    bare = _NOT_ALNUM.sub("", value)
    if len(bare) < _FEWEST_CHARS or len(set(bare)) < _FEWEST_DIFFERENT:
        return False
    if len(value) - len(bare) > _MOST_SEPARATORS * len(value):
        return False
    kinds = bare.translate(_KINDS).replace("Aaa", "aaa")
    changes = sum(map(kinds.count, _CHANGES))
    return "9" in kinds and changes >= _LEAST_CHANGES * len(bare)


def is_placeholder(value: str) -> bool:
    """Return whether *value* stands where a secret would: ``<key>``, ``${KEY}``, ``xxxx``."""
    return value.lower() in PLACEHOLDER_WORDS or bool(_PLACEHOLDER.fullmatch(value))


def is_code(value: str) -> bool:
    """Return whether *value* is an expression, the name of a variable, or the path of a file."""
    return bool(_CODE.fullmatch(value) or _NAMED_PLACE.fullmatch(value))


def is_drawn_letters(value: str) -> bool:
    """Return whether *value* is of letters whose case changes as it does in no word or name."""
    if len(value) < _FEWEST_LETTERS or not (value.isascii() and value.isalpha()):
        return False
    capitals = [char.isupper() for char in value]
    changes = sum(a != b for a, b in pairwise(capitals))
    return min(sum(capitals), changes) >= _LEAST_CASE_CHANGES * len(value)


def is_words(value: str) -> bool:
    """Return whether *value* is made of letters alone, or of words that are joined."""
    return bool(_WORDS_ONLY.fullmatch(value)) or value.lower() in ORDINARY
