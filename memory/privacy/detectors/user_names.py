"""Names that people log in with, beside the words for them in any language."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .english_words import is_english_word
from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures
from .secret_values import PLACEHOLDER_WORDS
from .word_lists import ORDINARY, read_words

_VALUE = compile_later(
    r"[A-Za-z](?<![A-Za-z0-9_.\-/].)[A-Za-z.-]{0,40}[0-9_](?:[A-Za-z0-9_.-]{0,40}[A-Za-z0-9])?"
    r"(?![A-Za-z0-9_(\[/@]|[.:-][A-Za-z0-9/])"
)
_MARK = compile_later(r"[A-Za-z][0-9_]")
_JOINTS = " \"'`\u201c\u201d\u201e\u00ab\u300c@:=\uff1a"
_LINKS = (
    *("は", "이", "가", "은", "는", "是", "为", "為", "คือ", "הוא", "है", "هو", "is", "was"),
    *("ist", "lautet", "est", "es", "era", "é", "è", "jest", "to", "je", "är", "er", "on", "là"),
)
_JOINED_ONLY = tuple(read_words("user_name_words_joined"))
"""Words that mean other things too: a colon, an equals sign or a quote has to stand behind them."""

_SHORTEST = 4
_WINDOW_CHARS = 48
_WEAK = ("account", "accounts", "user", "profile")
_LISTED = read_words("user_name_words")
_SURE_WORDS = tuple(
    each for each in (each.lstrip("*") for each in _LISTED) if each not in _JOINED_ONLY
)
_WORDS = (*_SURE_WORDS, *_JOINED_ONLY)
_LABELS = "|".join(re.escape(each[1:]) for each in _LISTED if each.startswith("*"))
_LABEL_BEFORE = compile_later(rf"(?<![\w.-])(?:{_LABELS})[\"'\u201d]?[ ]?\Z", re.IGNORECASE)
_LABELLED = compile_later(
    r"[:=\uff1a][ ]?[\"'\u201c]?(?P<name>[A-Za-z](?:[A-Za-z]|[.-](?=[A-Za-z])){3,40})"
    r"(?=[\"'.]?[ ]?(?:[\n,;|)}]|\Z))"
)
"""A name of letters alone, behind the colon of a label that means nothing else."""

_NO_NAMES = ORDINARY.union(read_words("role_mailboxes"), PLACEHOLDER_WORDS)
_SPACED = compile_later(r"[a-z\u00c0-\u052f]")
CLUES = frozenset(re.split(r"[^\w]|_", words)[0] for words in _WORDS if words.isascii())
"""Words without one of which a text of ASCII letters names no user."""


def may_hold_user_name(text: str, features: TextFeatures) -> bool:
    """Return whether *text* may say what somebody calls themselves at a service."""
    if not (features.has_digit or "_" in text or ":" in text or "=" in text or "\uff1a" in text):
        return False
    return not text.isascii() or not features.words.isdisjoint(CLUES)


def find_user_names(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find what follows a word for user names: with a digit or an underscore, or a colon before."""
    if _MARK.search(text):
        yield from _marked(text)
    for match in _LABELLED.finditer(text):
        name, end = match["name"].lower(), match.start()
        if _is_code(match["name"]) or is_english_word(name) or name in _NO_NAMES:
            continue
        if _LABEL_BEFORE.search(text, max(0, end - _WINDOW_CHARS), end):
            yield Finding(*match.span("name"), "USERNAME", 0.6, "value of a user name")


def _marked(text: str) -> Iterator[Finding]:
    for match in _VALUE.finditer(text):
        before = text[max(0, match.start() - _WINDOW_CHARS) : match.start()]
        value = match.group()
        # ``account type_a``: an underscore alone is code, beside a word that means other things.
        is_weak = (
            before.lower().rstrip(_JOINTS).endswith(_WEAK) and value.replace("_", "").isalpha()
        )
        if len(value) >= _SHORTEST and _announces(before) and not (is_weak or _is_code(value)):
            yield Finding(*match.span(), "USERNAME", 0.7, "value of a user name")


def _announces(before: str) -> bool:
    """Return whether *before* ends with a word for user names, and what may link a name to it."""
    stripped = before.lower().rstrip(_JOINTS)
    is_joined = before[len(stripped) :].strip() != ""
    if _ends_with_word(stripped):
        return is_joined or not stripped.endswith(_JOINED_ONLY) or stripped.endswith(_SURE_WORDS)
    before = stripped
    link = next((each for each in _LINKS if before.endswith(each)), "")
    return link != "" and _ends_with_word(before.removesuffix(link).rstrip(_JOINTS))


def _ends_with_word(before: str) -> bool:
    if not before.endswith(_WORDS):
        return False
    word = max((each for each in _WORDS if before.endswith(each)), key=len)
    preceding = before[: -len(word)][-1:]
    return _SPACED.match(word) is None or not (preceding.isalnum() or preceding in {"-", "/", "."})


def _is_code(value: str) -> bool:
    """Return whether *value* rather names a thing in code: ``USER_ID``, ``user_name``."""
    lower = value.lower()
    is_word = lower in _WORDS or re.split("[_.]", lower)[-1] in _WORDS
    return value.isupper() or is_word or lower.startswith("user_")
