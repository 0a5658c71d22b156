"""
Shapes of vendors' keys: a table of prefixes, alphabets and lengths, compiled into patterns.

Most begin with a prefix that nothing else has, or hold one further on: they are found bare. The
others could be any number or hash: they count beside the vendor's name and a word for a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import NamedTuple

from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures
from .secret_values import is_random
from .word_lists import split_words

_TABLE = files(__package__ or __name__).joinpath("data", "secret_shapes.tsv")
_ALPHABETS = {
    "digit": "0-9",
    "hex": "0-9a-f",
    "anyhex": "0-9a-fA-F",
    "lower": "0-9a-z",
    "upper": "0-9A-Z",
    "alnum": "0-9A-Za-z",
    "word": r"0-9A-Za-z_\-",
    "url": r"0-9A-Za-z_=\-",
    "dotted": r"0-9A-Za-z_=.~\-",
    "base64": "0-9A-Za-z+/",
    "bech32": "02-9AC-HJ-NP-Z",
    "path": r"0-9A-Za-z_=.~/+@\-",
}
_SPELLING = frozenset({"alnum", "word", "url", "dotted", "lower"})
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_RUN = compile_later(r"([a-z0-9]+):(\d+)(?:-(\d+)|(\+))?")
_OPEN_END = 2_048
_ENDS = r"={{0,2}}(?![0-9A-Za-z{glue}])"
_FIRST_WORD = compile_later(r"([A-Za-z]+)[^A-Za-z]")
_CONTEXT_CHARS = 80
_WORD = compile_later(r"(?<![A-Za-z0-9])[A-Za-z]+(?![A-Za-z0-9])")
_NEAREST_WORDS = 3
_KEY_WORDS = split_words("""
    api apikey apitoken access accesskey auth authorization bearer credential credentials creds
    hapikey key keys license pass passwd password pat presharedkey privatekey secret secrets
    secretkey sid token tokens
""")
_WEAK = compile_later(r"[0-9a-fA-F-]+")
_PLACEHOLDER = compile_later(
    r"(?i)x{5}|\*{3}|(?<![a-z0-9])your(?![a-z0-9])|0{12}|placeholder|change.?me|redacted"
)
_FEWEST_DIFFERENT = 6
_PIECES = compile_later(r"[^0-9A-Za-z]+")
_LONGEST_WORD = 20


class Shape(NamedTuple):
    """
    The shape of one kind of key.

    Attributes:
        rule: The vendor.
        context: Words of which one must stand beside it. Empty: it is found bare.
        pattern: Its regular expression.
        prefixes: What it begins with, one of them. Empty: it begins with anything.
        literal: The longest text that each of them holds further on.
        spells: Whether its alphabet could spell a name made of words.
    """

    rule: str
    context: frozenset[str]
    pattern: str
    prefixes: tuple[str, ...]
    literal: str
    spells: bool


@cache
def read_shapes() -> tuple[Shape, ...]:
    """Return the rows of the table, in its order."""
    lines = _TABLE.read_text("utf-8").splitlines()
    return tuple(_shape(line.split()) for line in lines if line and not line.startswith("#"))


def has_shape(text: str, features: TextFeatures) -> bool:
    """Return whether *text* may hold a key that is found bare."""
    if not features.has_long_word:
        return False
    clues = _clues()
    # A letter of another script may stand before a prefix, and is of one word with it.
    if not features.words.isdisjoint(clues.words.keys()) or features.has_other_script:
        return True
    return any(part in text for part in clues.parts)


def is_clue(word: str) -> bool:
    """Return whether an ASCII text with *word* may hold a key, unless by one of the `parts`."""
    return word in _clues().words or word in _vendors()


def parts() -> tuple[str, ...]:
    """Return what keys hold that begin with no word."""
    return _clues().parts


def find_shapes(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find keys by their shapes alone; where several agree, by that with the longest prefix."""
    found: dict[int, tuple[int, int, Finding]] = {}
    for prefix, shape, pattern in _candidates(text, features):
        for match in pattern.finditer(text):
            start, end = match.span()
            if _is_made_up(match[0], shape):
                continue
            held = found.get(start)
            if held is None or (len(prefix), end) > held[:2]:
                each = _finding(match, shape, "a shape of its keys", 0.95)
                found[start] = len(prefix), end, each
    for _length, _end, each in found.values():
        yield each


def _candidates(text: str, features: TextFeatures) -> Iterator[tuple[str, Shape, re.Pattern[str]]]:
    clues = _clues()
    words = clues.words.keys() if features.has_other_script else features.words & clues.words.keys()
    for each in (*chain.from_iterable(clues.words[word] for word in words), *clues.others):
        if (each[0] or each[1].literal) in text:
            yield each


def names_vendor(_text: str, features: TextFeatures) -> bool:
    """Return whether a text names a vendor whose keys need that."""
    return features.has_long_word and not features.words.isdisjoint(_vendors())


def find_vendor_keys(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find keys without a shape of their own beside the name of their vendor."""
    for shape, pattern in _beside_a_name():
        if features.words.isdisjoint(shape.context):
            continue
        for match in pattern.finditer(text):
            start = match.start()
            before = _WORD.findall(text, max(0, start - _CONTEXT_CHARS), start)
            if _is_named(match[0], [word.lower() for word in before], shape):
                yield _finding(match, shape, "its name beside the shape of its keys", 0.85)


def _is_named(value: str, words: list[str], shape: Shape) -> bool:
    """Return whether the *words* before *value* call it a key of the vendor's."""
    if shape.context.isdisjoint(words) or _is_made_up(value, shape):
        return False
    return not _KEY_WORDS.isdisjoint(words[-_NEAREST_WORDS:]) or (
        not _WEAK.fullmatch(value) and is_random(value)
    )


def _finding(match: re.Match[str], shape: Shape, evidence: str, score: float) -> Finding:
    return Finding(*match.span(), "SECRET", score, f"secret.{shape.rule}: {evidence}")


def _shape(columns: list[str]) -> Shape:
    rule, context, *parts = columns
    literals = [("|",) if part == "pipe" else tuple(part.split("|")) for part in parts]
    is_literal = [_RUN.fullmatch(part) is None and part != "uuid" for part in parts]
    inner = [each[0] for each, is_ in zip(literals, is_literal, strict=True) if is_]
    return Shape(
        rule,
        frozenset() if context == "-" else frozenset(context.split(",")),
        "".join(_pattern(part, is_last=part is parts[-1]) for part in parts),
        literals[0] if is_literal[0] else (),
        max(inner, key=len, default=""),
        spells=any((run := _RUN.fullmatch(part)) and run[1] in _SPELLING for part in parts),
    )


def _pattern(part: str, *, is_last: bool) -> str:
    if part == "uuid":
        return _UUID
    run = _RUN.fullmatch(part)
    if run is None:
        literals = ("|",) if part == "pipe" else part.split("|")
        return f"(?:{'|'.join(map(re.escape, literals))})"
    alphabet, least, most, is_open = run.groups()
    if is_open and is_last:
        return f"[{_ALPHABETS[alphabet]}]{{{least},}}+"
    return f"[{_ALPHABETS[alphabet]}]{{{least},{_OPEN_END if is_open else most or least}}}"


class _Clues(NamedTuple):
    """
    The shapes that are found bare, each prefix by itself, by what shows that a text may hold one.

    Attributes:
        words: By the word that the prefix begins with and something else ends.
        others: Those whose prefix is no such word, or that have none.
        parts: What a text with one of those others holds.
    """

    words: dict[str, list[tuple[str, Shape, re.Pattern[str]]]]
    others: list[tuple[str, Shape, re.Pattern[str]]]
    parts: tuple[str, ...]


@cache
def _clues() -> _Clues:
    clues = _Clues({}, [], ())
    for shape in read_shapes():
        if shape.context:
            continue
        rest = shape.pattern.partition(")")[2]
        for prefix in shape.prefixes:
            word = _FIRST_WORD.match(prefix)
            # A prefix of letters and digits alone may be anywhere in base64.
            glue = "+/" if prefix.isalnum() else ""
            ends = _ENDS.format(glue=glue)
            # The prefix first, so that `re` looks for it as a whole.
            before = f"(?<![0-9A-Za-z{glue}]{re.escape(prefix)})"
            source = f"{re.escape(prefix)}{before}{rest}{ends}"
            group = clues.words.setdefault(word[1].lower(), []) if word else clues.others
            group.append((prefix, shape, compile_later(source)))
        if not shape.prefixes:
            clues.others.append(("", shape, _bounded(shape.pattern)))
    parts = {prefix or shape.literal for prefix, shape, _ in clues.others}
    return clues._replace(parts=tuple(sorted(parts)))


@cache
def _beside_a_name() -> tuple[tuple[Shape, re.Pattern[str]], ...]:
    return tuple((shape, _bounded(shape.pattern)) for shape in read_shapes() if shape.context)


@cache
def _vendors() -> frozenset[str]:
    return frozenset(word for shape in read_shapes() for word in shape.context)


def _bounded(pattern: str) -> re.Pattern[str]:
    # A number may follow a word, as in a URL; nothing else begins in the middle of one, but a key
    # in place of a URL's user.
    before = "0-9" if pattern.startswith("[0-9]") else r"0-9A-Za-z+/_\-"
    return compile_later(rf"(?:(?<=://)|(?<![{before}])){pattern}(?:={{0,2}})(?![0-9A-Za-z_+/\-])")


def _is_made_up(value: str, shape: Shape) -> bool:
    """Return whether *value* was written by somebody: a placeholder, or a name made of words."""
    prefix = next(filter(value.startswith, shape.prefixes), "")
    body = value[len(prefix) :]
    if _PLACEHOLDER.search(body) or len(set(body)) < _FEWEST_DIFFERENT:
        return True
    return shape.spells and all(map(_is_word, _PIECES.split(body)))


def _is_word(piece: str) -> bool:
    is_plain = piece.isdigit() or piece.islower() or piece.isupper() or piece.istitle()
    if piece.isalpha() and is_plain:
        return len(piece) <= _LONGEST_WORD
    return not piece or piece.isdigit()
