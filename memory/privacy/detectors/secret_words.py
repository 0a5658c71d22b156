"""
Values that a text calls a password, key, token or code, in 25 languages.

A value stands behind a word for a secret: after ``:`` or ``=``, in JSON, YAML, XML and command
lines; in a sentence, after a word such as "is"; or right beside it. The less joins the two, the
more the value itself must look like a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures, lower_case
from .secret_values import is_code, is_drawn_letters, is_placeholder, is_random, is_words
from .word_lists import ORDINARY, read_words

_STEMS = ("passw", "secret", "token", "apikey", "accesskey", "privatekey", "accountkey")
"""Words for secrets that stand in names in camel case."""

_UNSPACED = "\u0590"
"""First letter of the scripts whose words are not told apart by spaces, or take prefixes."""

_FAR = compile_later("[\u0590-\uffdc]")
_SEPARATOR = (
    r"[\"'\]*_`]{0,3}(?::?[ ](?:string|text|str)(?=[ ]?=))?[ \t]{0,16}"
    r"(?::{1,3}=|[?.+]=|=>|->|[:=](?!=)|={2,3}(?=[ ]?[\"'])|\u2192|(?<=[\"']),(?=[ ]?[\"']))"
    r"[*_`]{0,3}[ \t]{0,4}(?:\n[ \t]{0,8}(?![\w.-]{1,60}[ \t]{0,4}[:=](?![=\s])))?"
    r"|>(?:\n[ \t]{0,8})?|[\"'][ \t]{1,4}value[ \t]{0,2}=[ \t]{0,2}"
    r"|[\"'],[ \t\n]{0,20}[\"']value[\"'][ \t]{0,2}:[ \t]{0,2}"
    r"|[ \t]{0,4}\n[ \t]{1,20}value:[ \t]{1,4}|[ ]?\|[ ]?"
)
_VALUE = (
    r"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{4,512})(?P=quote)"
    r"|[\"'`\u201c\u201e\u00ab(]?(?P<bare>(?:[^\s\"'`,;<>&|\u201c-\u201e\u00ab\u00bb\u3000-\u9fff"
    r"\uac00-\ud7a3\uff00-\uffef\u0e00-\u0e7f]|&(?!\w{1,40}=)){4,512}))"
)
_NOT_AFTER = (
    r"(?![ ](?:managers?|resets?|polic|hash|length|field|expir|generat|rotat|protect|less|require"
    r"|limit|count|usage|budget|cost|price|window|bucket|stream))"
)
_NOT_SECRET_BEFORE = compile_later(
    r"(?i)(?:next|page|continuation|continue|sync|cursor|eos|bos|pad|unk|sep|cls|mask|stop|special"
    r"|cancell?ation|public|pub|primary|foreign|cache|partition|sort|idempotency|object|routing|row"
    r"|unique|hash|group|order|index|dedup|per|max|min|num|total|input|output|prompt)[ _-]?$|:$"
)
VERBS = frozenset({"pass"})
"""Words for a secret that are mostly something else in a sentence."""

_BEFORE_CHARS, _SENTENCE_CHARS = 16, 100
_NUMBER = compile_later(
    r"(?i)v?[\d.,:/+\u2013-]+[a-z%\u20ac$\u00b0]{0,4}|[\u20ac$\u00a3\u00a5#]?[\d.,]+\D?"
    r"|\d{4}-\d\d-\d\d.*|\d+(?:st|nd|rd|th|[a-z]{1,3})?|q[1-4]|\w{1,10}-\d{1,4}(?:\.\d+)*[a-z]{0,2}"
)
_ADDRESS = compile_later(r"[^\s@]+@[\w-]+(?:\.[\w-]+)+|\w+://.*|(?:\w+\.)+[a-z]{2,4}")
_MIXED = compile_later(r"[A-Za-z]\d|\d[A-Za-z]")
_SPECIAL = compile_later(r"[!@#$%^&*+=~?](?!$)|\w[!$#*]$")
_JOINED = compile_later(r"(?i)[^\W\d_]{3,}[_.-]\d{2,}")
_JOINTS = compile_later(r"[^0-9A-Za-z]+")
_HEX = compile_later(r"[0-9a-f-]+|[0-9A-F-]+")
_FEWEST = {"password": 4, "key": 8}
_STRONG_CHARS, _LONG_PIECE, _MIXED_PIECE = 6, 16, 6


class _Kind(StrEnum):
    """What a word stands for: of a password, digits or letters alone may be the value."""

    PASSWORD = "password"  # noqa: S105 - no password
    KEY = "key"
    CODE = "code"


class _Word(NamedTuple):
    """
    A word or phrase for a secret.

    Attributes:
        phrase: In lower case; ``_`` stands for any joint or none.
        kind: What it stands for.
    """

    phrase: str
    kind: _Kind

    def is_in(self, lower: str) -> bool:
        """Return whether all its parts are in a text in lower case."""
        return all(part in lower for part in re.split("[ _]", self.phrase))

    def pattern(self) -> str:
        """Return its regular expression: the literal first, so that `re` looks for that."""
        literal, *rest = map(re.escape, re.split("[ _]", self.phrase))
        joint = "[ _-]?" if "_" in self.phrase else "[ _-]"
        is_stem = self.phrase.replace("_", "").startswith(_STEMS)
        bound = "" if is_stem or self.phrase >= _UNSPACED else rf"(?<![^\W_]{literal})"
        return f"{literal}{bound}" + "".join(f"{joint}{part}" for part in rest)


class _Words(NamedTuple):
    """
    The words for secrets, by what shows that a text may hold one.

    Attributes:
        by_clue: By one of the words in it.
        by_part: By a part of a text in a script whose words are not told apart by spaces.
    """

    by_clue: dict[str, list[_Word]]
    by_part: dict[str, _Word]


@cache
def _words() -> _Words:
    words = _Words({}, {})
    files = (
        (_Kind.PASSWORD, read_words("password_words")),
        (_Kind.KEY, read_words("key_words")),
        (_Kind.CODE, read_words("secret_code_words")),
    )
    for kind, phrases in files:
        for word in (_Word(phrase, kind) for phrase in phrases):
            if word.phrase >= _UNSPACED:
                words.by_part[word.phrase] = word
                continue
            for clue in _clues_of(word.phrase):
                words.by_clue.setdefault(clue, []).append(word)
    return words


def _clues_of(phrase: str) -> tuple[str, ...]:
    parts = re.findall(r"[^\W\d_]+", phrase)
    rare = [each for each in parts if each not in ORDINARY] or parts
    rarest = "pin" if "pin" in parts else max(rare, key=len)
    return (rarest, "".join(parts)) if "_" in phrase else (rarest,)


CLUES = frozenset(_words().by_clue)
"""Words of which a text that calls something a secret holds one, unless by a stem or a part."""


def is_clue(word: str) -> bool:
    """Return whether an ASCII text with *word* may call something a secret."""
    return word in CLUES or any(stem in word for stem in _STEMS)


def says_secret(text: str, features: TextFeatures) -> bool:
    """Return whether *text* holds a word for a secret."""
    if not features.words.isdisjoint(CLUES):
        return True
    if ("=" in text or ":" in text or ">" in text) and _stems_in(text):
        return True
    return not text.isascii() and bool(_FAR.search(text)) and bool(_parts_in(text))


def find_named_secrets(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find values that *text* calls a password, key, token or code."""
    words = _words()
    lower = lower_case(text)  # patterns are faster than with either case
    meant = {word for clue in features.words & CLUES for word in words.by_clue[clue]}
    for stem in _stems_in(text):
        meant.update(_words_of_stem(stem))
    if not text.isascii():
        meant.update(words.by_part[part] for part in _parts_in(text))
    for word in meant:
        if word.is_in(lower):
            yield from _FINDERS[word.kind](text, lower, word)


def _stems_in(text: str) -> list[str]:
    lower = text.lower()
    return [stem for stem in _STEMS if stem in lower]


@cache
def _words_of_stem(stem: str) -> tuple[_Word, ...]:
    found = (word for clue, words in _words().by_clue.items() for word in words if stem in clue)
    return tuple(dict.fromkeys(found))


def _parts_in(text: str) -> list[str]:
    return [part for part in _words().by_part if part in text]


def _find_values(text: str, lower: str, word: _Word) -> Iterator[Finding]:
    for match in _assigned(word).finditer(lower):
        value = _value_of(match, text)
        if not _is_other(lower, match) and _is_assigned(value, word.kind):
            yield value.found(f"secret.{word.kind}: value behind a word for it", 0.85)
    if word.phrase in VERBS:
        return
    for match in _said(word).finditer(lower):
        value = _value_of(match, text)
        # In code ``user_pwd *by_name`` declares something.
        is_type = match["is"] is None and lower.endswith("_", 0, match.start())
        is_other = is_type or _is_other(lower, match)
        if not is_other and _is_said(value, word.kind, gap=match["gap"]):
            yield value.found(f"secret.{word.kind}: said in a sentence", 0.8)
    for match in _named(word).finditer(lower) if word.kind is _Kind.PASSWORD else ():
        start = max(0, match.start() - _SENTENCE_CHARS)
        before = _said_before().search(lower[start : match.start()])
        if before and _is_strong(before["bare"]):
            first, end = (start + each for each in before.span("bare"))
            yield Finding(first, end, "SECRET", 0.8, "secret.password: said in a sentence")


def _find_codes(text: str, lower: str, word: _Word) -> Iterator[Finding]:
    del text
    for match in _coded(word).finditer(lower):
        yield Finding(*match.span("bare"), "SECRET", 0.8, "secret.code: digits behind its word")
    for match in _coded_before(word).finditer(lower):
        yield Finding(*match.span("bare"), "SECRET", 0.8, "secret.code: digits before its word")


_FINDERS = {_Kind.PASSWORD: _find_values, _Kind.KEY: _find_values, _Kind.CODE: _find_codes}


@cache
def _links() -> str:
    links = sorted(read_words("secret_links"), key=len, reverse=True)
    spaced = "|".join(re.escape(each) for each in links if each < _UNSPACED)
    others = "|".join(re.escape(each) for each in links if each >= _UNSPACED)
    return rf"(?:[ ](?:{spaced})(?![^\W_])|[ ]?(?:{others}))[ ]?:?[ ]?"


@cache
def _assigned(word: _Word) -> re.Pattern[str]:
    return re.compile(rf"{word.pattern()}(?P<word>)\d{{0,2}}(?P<is>{_SEPARATOR}){_VALUE}")


@cache
def _said(word: _Word) -> re.Pattern[str]:
    gap = r"(?P<gap>(?:[ ][^\W\d]{1,20}){0,4}?)"
    # Where the verb comes last, nothing but an owner stands between the two.
    beside = r"(?:[ ][^\W\d_a-z]{1,10}){0,2}[ ]" if word.phrase >= _UNSPACED else "[ ]"
    source = rf"(?P<word>){_NOT_AFTER}(?:{gap}(?P<is>{_links()}|:[ ])|{beside}){_VALUE}"
    return re.compile(word.pattern() + source)


@cache
def _named(word: _Word) -> re.Pattern[str]:
    return re.compile(word.pattern())


@cache
def _said_before() -> re.Pattern[str]:
    return re.compile(
        rf"(?<!\S)[\"'`]?(?P<bare>[^\s\"'`,;<>]{{6,64}})[\"'`]?{_links()}"
        rf"(?:[^\W\d]{{1,12}}[ ]){{1,2}}$"
    )


@cache
def _coded(word: _Word) -> re.Pattern[str]:
    joint = rf"(?:[\"']?[ ]?[:=#][ ]?[\"']?|(?:[ ][^\W\d]{{1,15}}){{0,3}}?{_links()}|[ ])"
    return re.compile(rf"{word.pattern()}(?:[ ](?:code|number))?{joint}{_CODE_DIGITS}")


@cache
def _coded_before(word: _Word) -> re.Pattern[str]:
    source = (
        rf"(?<![\w.,/:+-]){_CODE_DIGITS}{_links()}(?:[^\W\d]{{1,12}}[ ]){{1,3}}{word.pattern()}"
    )
    return re.compile(source)


_CODE_DIGITS = r"(?P<bare>(?:[a-z]-)?(?:\d{3}[ -]\d{3}|\d{3,8}))(?![0-9a-z_/]|[.,:-]\d)"


def _is_other(text: str, match: re.Match[str]) -> bool:
    """Return whether the word is part of the name of something that is no secret."""
    start = match.start()
    return bool(_NOT_SECRET_BEFORE.search(text[max(0, start - _BEFORE_CHARS) : start]))


class _Value(NamedTuple):
    """
    A value behind a word for a secret.

    Attributes:
        text: The value.
        start: Where it begins.
        is_quoted: Whether quotes stand around it.
        is_key: Whether something follows that makes it a key of a mapping, or an object in code.
        word: The word, as it is written.
        joint: What stands between the two. None: they stand side by side.
    """

    text: str
    start: int
    is_quoted: bool
    is_key: bool
    word: str
    joint: str | None

    def found(self, why: str, score: float) -> Finding:
        """Return it as a finding."""
        return Finding(self.start, self.start + len(self.text), "SECRET", score, why)


def _value_of(match: re.Match[str], text: str) -> _Value:
    is_quoted = match["quoted"] is not None
    start, end = match.span("quoted" if is_quoted else "bare")
    written = text[start:end]
    return _Value(
        written if is_quoted else written.rstrip(".,;:)]}").removesuffix("**"),
        start,
        is_quoted,
        not is_quoted and (written.endswith(":") or text.startswith("->", end - 1)),
        text[match.start() : match.start("word")],
        match["is"],
    )


def _is_assigned(value: _Value, kind: _Kind) -> bool:
    if len(value.text) < _FEWEST[kind] or value.is_key or is_placeholder(value.text):
        return False
    if (kind is _Kind.KEY or not value.is_quoted) and is_code(value.text):
        return False
    if " " in value.text:
        return "phrase" in value.word.lower()
    if is_words(value.text) and not is_drawn_letters(value.text):
        return _is_word_secret(value, kind)
    return kind is _Kind.PASSWORD or _looks_drawn(value.text)


def _is_word_secret(value: _Value, kind: _Kind) -> bool:
    """Return whether letters alone are a secret: quoted, or assigned as environments are."""
    lower = value.text.lower()
    if not lower.isalpha() or lower in ORDINARY or lower == value.word.lower():
        return False
    if kind is _Kind.KEY:
        # A name in camel case is code.
        is_plain = value.text in {lower, value.text.upper()} and value.joint == "="
        return len(lower) >= _LONG_PIECE and (value.is_quoted or is_plain)
    in_environment = value.joint == "=" and value.word.isupper()
    return len(lower) >= _STRONG_CHARS and (value.is_quoted or in_environment)


def _looks_drawn(value: str) -> bool:
    """Return whether *value* is more than words, numbers and versions that are joined."""
    pieces = _JOINTS.split(value)
    if any(len(each) >= _LONG_PIECE and _MIXED.search(each) for each in pieces):
        return True
    if _NUMBER.fullmatch(value) or _ADDRESS.fullmatch(value):
        return len(value) >= _LONG_PIECE and value.isdigit()
    mixed = any(len(each) >= _MIXED_PIECE and _MIXED.search(each) for each in pieces)
    return mixed or is_random(value) or bool(_SPECIAL.search(value))


def _is_said(value: _Value, kind: _Kind, *, gap: str | None) -> bool:
    text = value.text
    if " " in text:
        return "phrase" in value.word.lower()
    if is_placeholder(text) or is_code(text) or (is_words(text) and not is_drawn_letters(text)):
        return False
    if kind is _Kind.PASSWORD and value.joint is not None and not gap:
        return (
            text.isdigit() or value.is_quoted or _is_strong(text) or bool(_JOINED.fullmatch(text))
        )
    if kind is _Kind.KEY and value.joint is None:
        return is_random(text)
    return _is_strong(text) and (kind is _Kind.PASSWORD or _looks_drawn(text))


def _is_strong(value: str) -> bool:
    """Return whether *value* looks like a password wherever it stands."""
    if len(value) < _STRONG_CHARS or _NUMBER.fullmatch(value) or _ADDRESS.fullmatch(value):
        return False
    has_letter = any(map(str.isalpha, value))
    is_mixed = _MIXED.search(value) or _SPECIAL.search(value)
    return has_letter and bool(is_mixed or is_drawn_letters(value))
