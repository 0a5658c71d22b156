"""
The label of a field: what its key says of its value.

``{"passport": "512345678"}`` says what ``Passport: 512345678`` says on a form. The value by itself
is nine digits, or a word that only the key calls a password.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from ..detectors import address_forms, form_labels, phone_numbers, secret_words
from ..detectors.identifiers import search as identifiers
from ..names import find as names
from .value_redaction import Labels

_MOST_KEY_CHARS = 48
_JOINTS = re.compile(r"(?<=[a-z])(?=[A-Z])|[\W_]+")
_OPERATORS = frozenset(
    {
        *("$eq", "$ne", "$in", "$nin", "$like", "$ilike", "$contains", "$not_contains", "$not"),
        *("$gt", "$gte", "$lt", "$lte", "$between", "$exists"),
        *("eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains", "icontains"),
    }
)
"""Of the filters that stores take."""

_NAME = frozenset({"name", "names", "nombre", "nom", "nome"})
_OF_PEOPLE = frozenset({"full", "first", "last", "given", "family", "middle", "maiden", "birth"})
"""What a name has beside it that is no country's, table's or tool's: these are fields as well."""

_NUMBER_WORDS = frozenset({"number", "no", "nr", "num", "id", "numero", "nummer"})
"""What a label ends in that says what its number is in the words before."""

_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))
_OTHERS = frozenset({"ssn", "itin", "tin", "iban", "card", "cc"})
"""Words that detectors look for, and wait for by the digits of a value."""


def labels_of(keys: tuple[Any, ...]) -> Labels:
    """
    Return how a form would write each of *keys*, where a detector heeds such a label; else nothing.

    Returns:
        A label for each; None for an operator of a filter, whose value is that of the key outside.
        None: there is neither.
    """
    # Very many keys differ in a number alone.
    labels = tuple(
        [_label_of(each.translate(_NO_DIGITS)) if type(each) is str else "" for each in keys]
    )
    return None if labels.count("") == len(labels) else labels


@lru_cache(maxsize=4_096)
def _label_of(key: str) -> str | None:
    if key in _OPERATORS:
        return None
    if len(key) > _MOST_KEY_CHARS:
        return ""
    words = [each.lower() for each in _JOINTS.split(key) if each]
    label = " ".join(words)
    if not (
        any(map(_is_heeded, words))
        or identifiers.may_announce(words)
        or form_labels.has_label(f"{label}:", words)
    ):
        return ""
    return label[:1].upper() + label[1:]


@lru_cache(maxsize=1_024)
def names_person(label: str) -> bool:
    """Return whether what stands behind a *label* is a person, if it may be one."""
    words = frozenset(label.lower().split())
    return any(map(names.is_clue, words - _NAME)) or not (
        words.isdisjoint(_NAME) or words.isdisjoint(_OF_PEOPLE)
    )


@lru_cache(maxsize=1_024)
def names_number(label: str) -> bool:
    """
    Return whether a number behind *label* is what the label says.

    ``work_phone`` and ``tax_id`` are. When, how often and how long is said of something else:
    ``phone_verified_at``, ``password_length``.
    """
    return _ends_in_label(label.split())


def _ends_in_label(words: list[str]) -> bool:
    *before, last = words
    is_number = last.lower() in _NUMBER_WORDS
    if not before:
        return not is_number and last.lower() not in secret_words.VERBS and bool(_label_of(last))
    if is_number:
        return _ends_in_label(before) or not _label_of(" ".join(before))
    return bool(_label_of(last)) or not _label_of(" ".join(before))


def names_phone(label: str) -> bool:
    """Return whether a word of *label* is one for a telephone, by itself."""
    return any(map(phone_numbers.names_phone, label.lower().split()))


def _is_heeded(word: str) -> bool:
    return (
        word in _OTHERS
        or names.is_clue(word)
        or secret_words.is_clue(word)
        or phone_numbers.names_phone(word)
        or address_forms.may_have_form(word)
    )
