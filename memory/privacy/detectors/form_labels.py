"""
Numbers and addresses behind the labels of forms: ``NHC: 2569870``, ``Domicilio: C/ Mayor ,12``.

A label says what its value is, so the value needs no check digits, and may be written as forms and
scans have it: in groups, dotted, over two lines, with ``l`` for 1 and ``O`` for 0.

Of labels that are a word for a number and a word for its owner (``número de afiliación``,
``Kundennummer``) the table has whole words. Forms shorten them to the first letter and some behind
it, with a dot: ``Nro. Afil.``, ``Kd.-Nr.``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures, read_words_of
from .word_lists import read_lines

_GAP = r"[ \t]{0,2}(?:(?:n(?:umer|ummer|umber|[rº°o])?\.?)[ ])?[ \t]{0,2}[:=#|]?[ \t]{0,3}"
_TABLE = files(__package__ or __name__).joinpath("data", "label_forms.tsv")
_VALUE_CHAR = "[0-9A-Za-z]"
_ADDRESS = re.compile(
    r"(?=[^\n]{0,90}?(?:(?<![\w.])\d{1,5}|\bs/n\b))[^\n|;@]{4,90}?(?=\.?(?:\n|\Z|\t| {2}))",
    re.IGNORECASE,
)
"""The rest of a line, with a number in it or without one: "s/n"."""

_ADDRESS_ENTITY = "STREET_ADDRESS"
_ADDRESS_WORD = re.compile(r"[^\W\d_]{3}")
_SCANNED = str.maketrans("lIO", "110")
_LEAST_DIGITS = 4
_SAME = 2
"""Of the lengths of a value that is of one length, but for the letters of its country."""
_SHORT = 5
"""Letters of a label that is one in capitals only."""

_DIGITS = re.compile(r"\d(?:\D{0,8}\d)+")
_CHARS_BEFORE = 80
"""Before the digits of a number, with the letters that it begins with and its label."""


class _Row(NamedTuple):
    """A row of the table: an entity, and how its value is found."""

    entity: str
    value: re.Pattern[str]


class _Numbered(NamedTuple):
    """Words for a number, and patterns of owners behind such a word, before it, and short."""

    numbers: re.Pattern[str]
    words: frozenset[str]
    behind: re.Pattern[str]
    before: re.Pattern[str]
    short: re.Pattern[str]


class _Table(NamedTuple):
    """The rows, the words of labels, and the pattern of labels with a group for each row."""

    rows: tuple[_Row, ...]
    words: frozenset[str]
    labels: re.Pattern[str]


def may_hold_label(text: str, features: TextFeatures) -> bool:
    """Return whether a label of a form and a digit may be in a text."""
    return features.has_digit and (
        any(not features.words.isdisjoint(table.words) for table in _tables())
        or _numbered().numbers.search(text) is not None
    )


def has_label(text: str, words: Iterable[str]) -> bool:
    """Return whether a label is in *text*, whose *words* in small letters are given."""
    for table in _tables():
        if not table.words.isdisjoint(words) and table.labels.search(text) is not None:
            return True
    return next(_numbered_ends(text), None) is not None


def find_labelled(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find what stands behind the labels of forms."""
    found = set[int]()
    for row, label_end in _labels(text, features):
        value = row.value.match(text, label_end)
        if value is not None and _is_value(value.group(), row.entity):
            found.add(value.start())
            yield Finding(*value.span(), row.entity, 0.85, "behind its label on a form")
    for end in _numbered_ends(text):
        value = _NUMBERED_VALUE.match(text, end)
        if value is None or value.start() in found:
            continue
        if _is_value(value.group(), "NATIONAL_ID"):
            yield Finding(*value.span(), "NATIONAL_ID", 0.85, "behind its label on a form")


def _labels(text: str, features: TextFeatures) -> Iterator[tuple[_Row, int]]:
    """Yield the row and the end of each label: those of numbers are searched before digits only."""
    numbers, addresses = _tables()
    spans: list[tuple[_Table, int, int]] = []
    if not features.words.isdisjoint(numbers.words):
        done = 0
        for digits in _DIGITS.finditer(text):
            spans.append((numbers, max(done, digits.start() - _CHARS_BEFORE), digits.end()))
            done = digits.end()
    if not features.words.isdisjoint(addresses.words):
        spans.append((addresses, 0, len(text)))
    for table, start, end in spans:
        for label in table.labels.finditer(text, start, end):
            yield table.rows[(label.lastindex or 1) - 1], label.end()


def _numbered_ends(text: str) -> Iterator[int]:
    """Yield the end of each label that is a word for a number and one for its owner."""
    table = _numbered()
    for number in table.numbers.finditer(text):
        start, end = number.span()
        word = number.group().lower().rstrip(".°")
        if word not in table.words:
            continue
        is_apart = start == 0 or not text[start - 1].isalnum()
        if is_apart and (label := table.behind.match(text, end)):
            yield label.end()
            continue
        if len(word) == 1:  # the end of any word, joined with what is before it
            continue
        least = max(0, start - _OWNER_CHARS)
        # "Pat. No." is a patent's, and "me no 1234" none: English has its words whole.
        if table.before.search(text, least, start) or (
            word not in _ENGLISH and table.short.search(text, least, start)
        ):
            gap = _GAP_BEHIND.match(text, end)
            yield gap.end() if gap else end


def _is_value(value: str, entity: str) -> bool:
    if entity == _ADDRESS_ENTITY:
        return "://" not in value and _ADDRESS_WORD.search(value) is not None
    compact = "".join(filter(str.isalnum, value))
    digits = sum(map(str.isdigit, compact.translate(_SCANNED)))
    return digits >= _LEAST_DIGITS and 2 * digits >= len(compact)


@cache
def _tables() -> tuple[_Table, _Table]:
    """Return the labels of numbers, and those of addresses."""
    lines = [line.split(" ; ") for line in _lines(numbered=False)]
    return (
        _table(each for each in lines if each[0] != _ADDRESS_ENTITY),
        _table(each for each in lines if each[0] == _ADDRESS_ENTITY),
    )


def _table(lines: Iterable[list[str]]) -> _Table:
    rows: list[_Row] = []
    words: set[str] = set()
    labels: list[str] = []
    for entity, lengths, names in lines:
        least, most = map(int, lengths.split("-"))
        rows.append(_Row(entity, _ADDRESS if entity == _ADDRESS_ENTITY else _value_of(least, most)))
        words.update(max(read_words_of(each), key=len) for each in names.split("|"))
        labels.append(f"({'|'.join(map(_label, names.split('|')))})")
    pattern = rf"(?<![^\W_])(?:{'|'.join(labels)}){_GAP}"
    return _Table(tuple(rows), frozenset(words), re.compile(pattern, re.IGNORECASE))


@cache
def _numbered() -> _Numbered:
    words: dict[str, list[str]] = {"number": [], "behind": [], "before": []}
    for line in _lines(numbered=True):
        _entity, role, names = line.split(" ; ")
        words[role] += names.split("|")
    behind, before, short = (
        "|".join(map(pattern, sorted(set(words[role]), key=len, reverse=True)))
        for role, pattern in (
            ("behind", _behind),
            ("before", re.escape),
            ("before", _shortened),
        )
    )
    of = r"[ ]{0,2}(?:d(?:e|el|o|a|i|u)?[ '\u2019])?"
    # A class first, which a search is fast by; letters of other words behind it do no harm.
    firsts = "".join({each for word in words["number"] for each in (word[0], word[0].upper())})
    numbers = "|".join(
        sorted({re.escape(word[1:]) for word in words["number"]}, key=len, reverse=True)
    )
    return _Numbered(
        re.compile(rf"[{firsts}](?i:{numbers})(?![^\W_])[.°]?"),
        frozenset(each.lower().rstrip(".°") for each in words["number"]),
        re.compile(rf"{of}(?:{behind}){_GAP}", re.IGNORECASE),
        re.compile(rf"(?<![^\W_])(?:{before})[ ]?(?:-[ ]?)?\Z", re.IGNORECASE),
        re.compile(rf"(?<![^\W_])(?:{short})(?:\.?[ ]?-[ ]?|\.[ ]?)?\Z", re.IGNORECASE),
    )


def _lines(*, numbered: bool) -> Iterator[str]:
    """Yield the lines of the table, with what a text has whose compatibility forms are undone."""
    for line in read_lines(_TABLE):
        if line.startswith("NUMBERED") == numbered:
            head, _, names = line.rpartition(" ; ")
            both = (*names.split("|"), *unicodedata.normalize("NFKC", names).split("|"))
            yield f"{head} ; {'|'.join(dict.fromkeys(both))}"


def _behind(word: str) -> str:
    """Return the pattern of a word: whole, or short with a dot."""
    whole = rf"{re.escape(word)}(?![^\W_])\.?"
    return whole if len(word) <= _SHORT else rf"{whole}|{_shortened(word)}\."


def _shortened(word: str) -> str:
    """Return the pattern of the first letter of *word* and some behind it, in their order."""
    return f"{word[0]}(?=[{word[1:]}])" + "".join(f"{each}?" for each in word[1:])


def _label(name: str) -> str:
    """Return the pattern of a label, whose dots and spaces a form may leave out."""
    parts = [re.escape(each) for each in re.split(r"[ .]+", name.rstrip(":")) if each]
    end = r"(?=[ \t]{0,2}[:|])" if name.endswith(":") else r"(?![^\W_])"
    pattern = r"[ .]{0,2}".join(parts) + r"\.?" + end
    is_short = sum(map(len, parts)) <= _SHORT and name.isupper()
    return f"(?-i:{pattern})" if is_short else pattern


_GAP_BEHIND = compile_later(_GAP, re.IGNORECASE)
_ENGLISH = frozenset(("no", "number", "nbr"))
_OWNER_CHARS = 24
"""Letters of the longest word that stands before one for a number, and what joins them."""


def _value_of(least: int, most: int) -> re.Pattern[str]:
    """Return the pattern of a value; one of a certain length may go on in the next line."""
    joint = r"(?:[./\-]|[ \u00a0](?=[A-Za-z]{0,3}\d|[lIO](?![a-z]))"
    joint += r"|\n(?=[0-9lIO]))?" if most - least <= _SAME else ")?"
    body = rf"{_VALUE_CHAR}(?:{joint}{_VALUE_CHAR}){{{least - 1},{most - 1}}}"
    # "MRN is 4821073": a small word between a label and its value is no part of it.
    return re.compile(rf"(?![a-z]{{1,5}} ){body}(?![^\W_])")


_NUMBERED_VALUE = _value_of(4, 16)
