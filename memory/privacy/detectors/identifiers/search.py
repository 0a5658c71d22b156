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
from ..prefilter import TextFeatures, lower_case
from .kinds import ALNUM, PREFIX_CHARS, UNSPACED, IdentifierKind
from .table import read_kinds

_CHARS_BEFORE, _CHARS_AFTER = 60, 25
_REACH_BEFORE, _REACH_AFTER = 110, 130
"""Characters around the end of a word in which a number is looked for, with its own length."""

_LEAST_DIGITS = 2
_SIGNATURE = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "A" * 26 + "9" * 10
)  # of capitals only: what is in lower case is a word, or a digest
_TOKEN = compile_later(
    rf"[A-Z0-9](?<!{ALNUM}.)(?<![_./@+-].)[A-Z0-9.()/-]{{7,31}}+(?!{ALNUM}|[_@=+])"
)
_HEAD = compile_later(rf"(?<!{ALNUM})[A-Z]{{1,4}} ?\Z")
_TAIL = compile_later(rf" ?[A-Z]{{1,2}}(?!{ALNUM})")
_TIMESTAMP = compile_later(
    r"(?:(?:19|20)?[0-39]\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
    r"|(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])(?:19|20)?[0-39]\d)"
    r"(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?"
    r"|(?:[01]\d|2[0-3])[0-5]\d[0-5]\d(?:0\d|1[0-4])(?:00|30|45)"
)
"""
What dates of birth look like: a date and a time of this century or the end of the last, and a time
with its zone.
"""

_OTHER_NUMBER = compile_later(
    r"\b(?:orders?|invoice|ticket|tracking|phone|tel|fax|zip|port|version|page|line|room|case|ref"
    r"|commande|facture|pedido|factura|bestellung|rechnung|ordine|zamówieni\w+)\b|\n\n|[.!?;]\s",
    re.IGNORECASE,
)
_OTHER_VALUE = compile_later(
    r"\A(?![\"'],\s?[\"']\w+[\"']\s?:\s?[\"']?\Z).*?[,{][\s\"'#]*[\w.-]+[\"']?\s?[:=]"
    r"|\A[\w-]*[^\W\d_][\w-]*[-_]\Z",
    re.DOTALL,
)
"""
Another key begins between a word and a number, or both are parts of one id.

The key may stand right behind a value that is the word: ``"type": "passport", "number": "…"``.
"""

_DATE = compile_later(
    r"\d{1,2}([./ -])\d{1,2}\1(?:19|20)?\d\d|(?:19|20)\d\d([./ -])\d{1,2}\2\d{1,2}"
    r"|(?:19|20)\d\d ?[-/\u2013] ?(?:19|20)\d\d"
)
_LABEL_GAP, _UNCHECKED_GAP = 20, 40


class _Index(NamedTuple):
    """
    Ways into the table.

    Attributes:
        words: Kinds by how the first word begins that announces them, with how the others do.
        unspaced: Kinds by a word of a script without spaces.
        in_scripts: Finds those words.
        signatures: Kinds by the signature of forms that need no word.
    """

    words: dict[str, list[tuple[frozenset[str], IdentifierKind]]]
    unspaced: dict[str, list[IdentifierKind]]
    in_scripts: re.Pattern[str]
    signatures: dict[str, list[IdentifierKind]]


def find_identifiers(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find national, tax and social security numbers, and others of the tables."""
    for kind, windows in _announced_kinds(text, features).items():
        for start, end in _merged(windows):
            yield from _find_announced(kind, text, start, end)
    if features.has_digit_run or features.has_long_word:
        yield from _find_bare(text, features)


def announces(text: str, features: TextFeatures) -> bool:
    """Return whether a word in *text* announces a number that is one of the tables' then."""
    return bool(_announced_kinds(text, features))


def is_clue(word: str) -> bool:
    """Return whether *word*, with others perhaps, may announce such a number."""
    return word[:PREFIX_CHARS] in _index().words


def may_announce(words: Iterable[str]) -> bool:
    """Return whether *words* may announce such a number in an ASCII text."""
    index = _index()
    beginnings = {word[:PREFIX_CHARS] for word in words}
    return any(
        others <= beginnings
        for beginning in index.words.keys() & beginnings
        for others, _ in index.words[beginning]
    )


def load() -> None:
    """Read the table now, so that no search waits for it."""
    _index()


def _announced_kinds(text: str, features: TextFeatures) -> dict[IdentifierKind, list[int]]:
    """Return the kinds of which a word is in *text*, and where such words end."""
    index = _index()
    beginnings = {word[:PREFIX_CHARS] for word in features.words}
    found: dict[IdentifierKind, list[int]] = {}
    fold_case = ""
    for beginning in index.words.keys() & beginnings:
        fold_case = fold_case or lower_case(text)
        places = list(_places(fold_case, beginning))
        for others, kind in index.words[beginning]:
            if others <= beginnings:
                ends = [match.end() for place in places if (match := kind.near.match(text, place))]
                if ends:
                    found.setdefault(kind, []).extend(ends)
    if not text.isascii():
        for match in index.in_scripts.finditer(text):
            for kind in index.unspaced[match.group()]:
                found.setdefault(kind, []).append(match.end())
    return found


def _places(fold_case: str, beginning: str) -> Iterator[int]:
    """Yield where a word begins so; what is too short to be a beginning is a whole word."""
    is_whole, size = len(beginning) < PREFIX_CHARS, len(beginning)
    place = fold_case.find(beginning)
    while place != -1:
        end = place + size
        is_within = place > 0 and fold_case[place - 1].isalnum()
        if not (is_within or (is_whole and fold_case[end : end + 1].isalpha())):
            yield place
        place = fold_case.find(beginning, end)


def _merged(ends: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text where a number may stand that the words before *ends* announce."""
    start, end = -1, -1
    for each in sorted(ends):
        if each - _REACH_BEFORE > end:
            if end >= 0:
                yield max(0, start), end
            start = each - _REACH_BEFORE
        end = each + _REACH_AFTER
    yield max(0, start), end


def _find_announced(kind: IdentifierKind, text: str, start: int, end: int) -> Iterator[Finding]:
    for pattern in kind.loose_patterns:
        match = pattern.search(text, start, end)
        while match is not None:
            is_cut = match.end() == end < len(text)
            score = 0.0 if is_cut else _score(kind, text, match)
            if score:
                yield Finding(*match.span(), kind.entity, score, kind.label)
            # What is none may hide one: in "autem KR 12345" the word looks like a region's letters.
            further = match.end() if score else match.start() + 1
            match = pattern.search(text, further, end)


def _score(kind: IdentifierKind, text: str, match: re.Match[str]) -> float:
    """Return how sure a number is that stands near a word; 0 where it is none."""
    number = _compacted(match.group())
    start, end = match.span()
    before = text[max(0, start - _CHARS_BEFORE) : start]
    if kind.is_checked and number.isascii() and kind.check(number):
        near = kind.near
        is_near = near.search(before) or near.search(text[end : end + _CHARS_AFTER])
        return 0.95 if is_near else 0.0
    if _is_words(match.group()) or _DATE.fullmatch(match.group()):
        return 0.0
    gap = _LABEL_GAP if kind.is_checked else _UNCHECKED_GAP
    return 0.75 if _is_labelled(kind, before, text[end : end + _CHARS_AFTER], gap) else 0.0


def _is_words(found: str) -> bool:
    """Return whether *found* has small letters and spaces, or hardly a digit."""
    count = sum(map(str.isdigit, found))
    few = count < _LEAST_DIGITS or 4 * count < len(found)
    return few or (any(map(str.islower, found)) and any(map(str.isspace, found)))


def _is_labelled(kind: IdentifierKind, before: str, after: str, gap: int) -> bool:
    """Return whether a word that means nothing else stands beside a number."""
    if (sure := kind.sure) is None:
        return False
    last = max((each.end() for each in sure.finditer(before)), default=-_CHARS_BEFORE)
    between = before[last:].removeprefix(".")  # of an abbreviation: "Pass-Nr. C01X00T47"
    if last >= 0 and len(between) <= gap:
        other = _OTHER_NUMBER.search(between) or _OTHER_VALUE.search(between)
        return not other and not any(map(str.isdigit, between))
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
            for token, at in _spaced(text, start, end):
                if kinds := index.signatures.get(token.translate(_SIGNATURE)):
                    yield from _check_bare(kinds, token, at)


def _spaced(text: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    """Yield a run of digits, and with the capitals before and behind it, and where each begins."""
    end = start + len(text[start:end].rstrip(" ./-(\u00a0"))
    head = _HEAD.search(text, max(0, start - 6), start)
    tail = _TAIL.match(text, end)
    if head is None and start and text[start - 1].isalnum():
        return
    for first in {start, head.start() if head else start}:
        for last in {end, tail.end() if tail else end}:
            yield text[first:last], first


def _check_bare(kinds: list[IdentifierKind], token: str, start: int) -> Iterator[Finding]:
    number = _compacted(token)
    if _TIMESTAMP.fullmatch(number):
        return
    for kind in kinds:
        if kind.compact_pattern.fullmatch(number) and kind.check(number):
            why = f"{kind.label}, by its check digits"
            yield Finding(start, start + len(token), kind.entity, 0.9, why)


def _compacted(number: str) -> str:
    """Return *number* in capitals, without separators, its digits those of ASCII."""
    kept = "".join(filter(str.isalnum, number.upper()))
    return kept if kept.isascii() else "".join(map(_ascii_digit, kept))


def _ascii_digit(char: str) -> str:
    return str(int(char)) if char.isdecimal() else char


@cache
def _index() -> _Index:
    words: dict[str, list[tuple[frozenset[str], IdentifierKind]]] = {}
    unspaced: dict[str, list[IdentifierKind]] = {}
    signatures: dict[str, list[IdentifierKind]] = {}
    for kind in read_kinds():
        for first, *others in kind.beginnings:
            words.setdefault(first, []).append((frozenset(others), kind))
        for word in filter(UNSPACED.search, kind.plain_words):
            unspaced.setdefault(word, []).append(kind)
        for signature in set(kind.signatures()):
            signatures.setdefault(signature, []).append(kind)
    return _Index(
        words,
        unspaced,
        re.compile("|".join(map(re.escape, sorted(unspaced, key=len, reverse=True)))),
        signatures,
    )
