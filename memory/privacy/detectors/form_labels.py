"""
Numbers and addresses behind the labels of forms: ``NHC: 2569870``, ``Domicilio: C/ Mayor ,12``.

A label says what its value is, so the value needs no check digits, and may be written as forms and
scans have it: in groups, dotted, over two lines, with ``l`` for 1 and ``O`` for 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from .finding import Finding
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

_ADDRESS_WORD = re.compile(r"[^\W\d_]{3}")
_SCANNED = str.maketrans("lIO", "110")
_LEAST_DIGITS = 4
_SAME = 2
"""Of the lengths of a value that is of one length, but for the letters of its country."""
_SHORT = 5
"""Letters of a label that is one in capitals only."""


class _Row(NamedTuple):
    """A row of the table: an entity, how its value is found, and whether that is an address."""

    entity: str
    value: re.Pattern[str]
    is_address: bool


class _Table(NamedTuple):
    """The rows, the words of labels, and the pattern of labels with a group for each row."""

    rows: tuple[_Row, ...]
    words: frozenset[str]
    labels: re.Pattern[str]


def may_hold_label(_text: str, features: TextFeatures) -> bool:
    """Return whether a label of a form and a digit may be in a text."""
    return features.has_digit and not features.words.isdisjoint(_table().words)


def has_label(text: str, words: Iterable[str]) -> bool:
    """Return whether a label is in *text*, whose *words* in small letters are given."""
    table = _table()
    return not table.words.isdisjoint(words) and table.labels.search(text) is not None


def find_labelled(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find what stands behind the labels of forms."""
    table = _table()
    for label in table.labels.finditer(text):
        row = table.rows[(label.lastindex or 1) - 1]
        value = row.value.match(text, label.end())
        if value is not None and _is_value(value.group(), is_address=row.is_address):
            yield Finding(*value.span(), row.entity, 0.85, "behind its label on a form")


def _is_value(value: str, *, is_address: bool) -> bool:
    if is_address:
        return "://" not in value and _ADDRESS_WORD.search(value) is not None
    compact = "".join(filter(str.isalnum, value))
    digits = sum(map(str.isdigit, compact.translate(_SCANNED)))
    return digits >= _LEAST_DIGITS and 2 * digits >= len(compact)


@cache
def _table() -> _Table:
    rows: list[_Row] = []
    words: set[str] = set()
    labels: list[str] = []
    for line in read_lines(_TABLE):
        entity, lengths, names = line.split(" ; ")
        least, most = map(int, lengths.split("-"))
        is_address = entity == "STREET_ADDRESS"
        rows.append(_Row(entity, _ADDRESS if is_address else _value_of(least, most), is_address))
        words.update(max(read_words_of(each), key=len) for each in names.split("|"))
        labels.append(f"({'|'.join(map(_label, names.split('|')))})")
    pattern = rf"(?<![^\W_])(?:{'|'.join(labels)}){_GAP}"
    return _Table(tuple(rows), frozenset(words), re.compile(pattern, re.IGNORECASE))


def _label(name: str) -> str:
    """Return the pattern of a label, whose dots and spaces a form may leave out."""
    parts = [re.escape(each) for each in re.split(r"[ .]+", name.rstrip(":")) if each]
    end = r"(?=[ \t]{0,2}[:|])" if name.endswith(":") else r"(?![^\W_])"
    pattern = r"[ .]{0,2}".join(parts) + r"\.?" + end
    is_short = sum(map(len, parts)) <= _SHORT and name.isupper()
    return f"(?-i:{pattern})" if is_short else pattern


def _value_of(least: int, most: int) -> re.Pattern[str]:
    """Return the pattern of a value; one of a certain length may go on in the next line."""
    joint = r"(?:[./\-]|[ \u00a0](?=[A-Za-z]{0,3}\d|[lIO](?![a-z]))"
    joint += r"|\n(?=[0-9lIO]))?" if most - least <= _SAME else ")?"
    body = rf"{_VALUE_CHAR}(?:{joint}{_VALUE_CHAR}){{{least - 1},{most - 1}}}"
    # "MRN is 4821073": a small word between a label and its value is no part of it.
    return re.compile(rf"(?![a-z]{{1,5}} ){body}(?![^\W_])")
