"""
The search for the identifiers of the tables: beside their words, and by their arithmetic alone.

A text calls for the patterns of those kinds only whose words it holds. Without a word, each group
of capitals and digits is looked up by its signature: ``123.456.789-09`` is ``999.999.999-99``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from ..finding import Finding
from ..lazy_pattern import compile_later
from ..prefilter import TextFeatures
from .kinds import ALNUM, PREFIX_CHARS, UNSPACED, Kind
from .table import read_kinds

_CHARS_BEFORE, _CHARS_AFTER = 60, 25
_LEAST_DIGITS = 3
_SIGNATURE = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "A" * 26 + "9" * 10
)  # of capitals only: what is in lower case is a word, or a digest
_TOKEN = compile_later(
    rf"[A-Z0-9](?<!{ALNUM}.)(?<![_./@+-].)[A-Z0-9.()/-]{{7,31}}+(?!{ALNUM}|[_@=+])"
)
_TIMESTAMP = compile_later(
    r"(?:(?:20)?[0-3]\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
    r"|(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])(?:20)?[0-3]\d)(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?"
)
_OTHER_NUMBER = compile_later(
    r"\b(?:orders?|invoice|ticket|tracking|phone|tel|fax|zip|port|version|page|line|room|case|ref"
    r"|commande|facture|pedido|factura|bestellung|rechnung|ordine|zamówieni\w+)\b|\n\n|[.!?;]\s",
    re.IGNORECASE,
)
_LABEL_GAP, _UNCHECKED_GAP = 20, 40


class _Index(NamedTuple):
    """
    Ways into the table.

    Attributes:
        exact: Kinds by a word that announces them.
        prefixes: Kinds by the first letters of one.
        unspaced: Kinds by a word of a script without spaces.
        in_scripts: Finds those words.
        signatures: Kinds by the signature of forms that need no word.
        spaced: Finds those of them in which spaces are.
    """

    exact: dict[str, list[Kind]]
    prefixes: dict[str, list[Kind]]
    unspaced: dict[str, list[Kind]]
    in_scripts: re.Pattern[str]
    signatures: dict[str, list[Kind]]
    spaced: re.Pattern[str]


def find_identifiers(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find national, tax and social security numbers, and others of the tables."""
    for kind in _announced_kinds(text, features):
        yield from _find_announced(kind, text)
    if features.has_digit_run:
        yield from _find_bare(text, features)


def _announced_kinds(text: str, features: TextFeatures) -> Iterable[Kind]:
    """Return the kinds of which a word is in *text*."""
    index = _index()
    found: dict[Kind, None] = {}
    for word in features.words:
        if (kinds := index.exact.get(word)) or (kinds := index.prefixes.get(word[:PREFIX_CHARS])):
            found.update(dict.fromkeys(kinds))
    if not text.isascii():
        for word in set(index.in_scripts.findall(text)):
            found.update(dict.fromkeys(index.unspaced[word]))
    return found


def _find_announced(kind: Kind, text: str) -> Iterator[Finding]:
    words = kind.announced
    if not words.pattern.search(text):
        return
    for match in kind.loose_pattern.finditer(text):
        if score := _score(kind, text, match):
            yield Finding(*match.span(), kind.entity, score, f"{kind.country} {kind.name}")


def _score(kind: Kind, text: str, match: re.Match[str]) -> float:
    """Return how sure a number is that stands near a word; 0 where it is none."""
    number = _compacted(match.group())
    if sum(map(str.isdigit, number)) < _LEAST_DIGITS:
        return 0.0
    start, end = match.span()
    before = text[max(0, start - _CHARS_BEFORE) : start]
    if kind.is_checked and number.isascii() and kind.check(number):
        near = kind.announced.pattern
        is_near = near.search(before) or near.search(text[end : end + _CHARS_AFTER])
        return 0.95 if is_near else 0.0
    gap = _LABEL_GAP if kind.is_checked else _UNCHECKED_GAP
    return 0.75 if _is_labelled(kind, before, text[end : end + _CHARS_AFTER], gap) else 0.0


def _is_labelled(kind: Kind, before: str, after: str, gap: int) -> bool:
    """Return whether a word that means nothing else stands beside a number."""
    if (sure := kind.announced.sure) is None:
        return False
    last = max((each.end() for each in sure.finditer(before)), default=-_CHARS_BEFORE)
    between = before[last:]
    if last >= 0 and len(between) <= gap:
        return not any(map(str.isdigit, between)) and not _OTHER_NUMBER.search(between)
    first = sure.search(after)
    return first is not None and not any(map(str.isalnum, after[: first.start()]))


def _find_bare(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find the numbers that need no word."""
    index = _index()
    for match in _TOKEN.finditer(text):
        token = match.group().rstrip("./-(")
        token = token if "(" in token else token.rstrip(")")
        if kinds := index.signatures.get(token.translate(_SIGNATURE)):
            yield from _check_bare(kinds, token, match.start())
    for start, end in features.digit_runs:
        if " " in text[start:end].strip():
            for match in index.spaced.finditer(text, max(0, start - 8), end + 4):
                token = match.group()
                kinds = index.signatures.get(token.translate(_SIGNATURE), [])
                yield from _check_bare(kinds, token, match.start())


def _check_bare(kinds: list[Kind], token: str, start: int) -> Iterator[Finding]:
    number = _compacted(token)
    if _TIMESTAMP.fullmatch(number):
        return
    for kind in kinds:
        if kind.compact_pattern.fullmatch(number) and kind.check(number):
            why = f"{kind.country} {kind.name} by its check digits"
            yield Finding(start, start + len(token), kind.entity, 0.9, why)


def _compacted(number: str) -> str:
    """Return *number* in capitals, without separators, its digits those of ASCII."""
    kept = "".join(filter(str.isalnum, number.upper()))
    return kept if kept.isascii() else "".join(map(_ascii_digit, kept))


def _ascii_digit(char: str) -> str:
    return str(int(char)) if char.isdecimal() else char


@cache
def _index() -> _Index:
    exact: dict[str, list[Kind]] = {}
    prefixes: dict[str, list[Kind]] = {}
    unspaced: dict[str, list[Kind]] = {}
    signatures: dict[str, list[Kind]] = {}
    for kind in read_kinds():
        for word in kind.announced.exact:
            exact.setdefault(word, []).append(kind)
        for word in kind.announced.prefixes:
            prefixes.setdefault(word, []).append(kind)
        for word in filter(UNSPACED.search, kind.words.replace("~", "").split("|")):
            unspaced.setdefault(word, []).append(kind)
        for signature in set(kind.signatures()):
            signatures.setdefault(signature, []).append(kind)
    return _Index(
        exact,
        prefixes,
        unspaced,
        re.compile("|".join(map(re.escape, sorted(unspaced, key=len, reverse=True)))),
        signatures,
        _spaced_pattern(signatures),
    )


def _spaced_pattern(signatures: Iterable[str]) -> re.Pattern[str]:
    spaced = (re.escape(each) for each in signatures if " " in each)
    shapes = "|".join(
        each.replace("9", "[0-9]").replace("A", "[A-Z]")
        for each in sorted(spaced, key=len, reverse=True)
    )
    return re.compile(rf"(?<!{ALNUM})(?<![_.,+-])(?:{shapes})(?!{ALNUM}|[_(]|[ .,-][0-9])")
