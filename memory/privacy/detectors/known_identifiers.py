"""
Identifiers of the data subject that the caller supplied: certain findings, searched for first.

An id, name, e-mail address or phone number is searched for as a whole, ignoring case, and in parts:
the names in a name, the local part of an address. Ordinary words and one or two characters are not
searched for: they would match everywhere and identify nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from .finding import CALLER_SUPPLIED, Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures
from .word_lists import ORDINARY, read_words

_IDENTIFY_NOBODY = ORDINARY.union(read_words("role_mailboxes"))
_NAME_PART = compile_later(r"[^\W\d_]{3,}")
_LETTERS = compile_later(r"[^\W\d_]+")
_PHONE = compile_later(r"[+(]?\d[\d\s().\-/]{5,20}\d")
_BETWEEN_DIGITS = r"[\s().\-/]{0,3}"
_SHORTEST, _SHORTEST_NUMBER, _SIGNIFICANT_DIGITS = 2, 4, 9
_MAX_TERMS = 64
_MAX_CLEAN = 64
LABEL_CHARS = 64
"""Characters of the longest text that counts as a label."""


class _SearchTerm(NamedTuple):
    """
    One identifier, or part of one, to search for.

    Attributes:
        pattern: Regular expression.
        entity: Entity of its findings.
        anchor: Lower-case word in every ASCII text that holds it.
    """

    pattern: str
    entity: str
    anchor: str = ""

    def __repr__(self) -> str:
        """Hide the identifier."""
        return "_SearchTerm(...)"


class KnownIdentifiers:
    """
    The identifiers of one data subject, searchable.

    Args:
        identifiers: As the caller gave them. Of more than 64 parts, the longest are used.

    Attributes:
        clean: Short texts, such as names of collections and features, known to hold neither
            these identifiers nor other personal data.
    """

    def __init__(self, identifiers: Sequence[str]) -> None:
        self._identifiers = identifiers
        self._words = _words_of(identifiers)
        self.key = "\0".join(identifiers)
        self.clean: set[str] = set()

    def __repr__(self) -> str:
        """Hide the identifiers."""
        return "KnownIdentifiers(...)"

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to search for."""
        return not self._longest_first

    def mark_clean(self, text: str) -> None:
        """
        Remember that a short *text* is clean, if it is one line; any gives way when it is full.

        To forget all, or the oldest, would lose every one where a few more come round in turn.
        """
        if len(text) > LABEL_CHARS or not text.isprintable():
            return
        if len(self.clean) >= _MAX_CLEAN:
            self.clean.pop()
        self.clean.add(text)

    def are_apart_from(self, features: TextFeatures) -> bool:
        """Return whether none of these identifiers can be in a text of such *features*."""
        return not features.has_digit and self._words.isdisjoint(features.words)

    def find(self, text: str, features: TextFeatures) -> Iterator[Finding]:
        """Find the identifiers in *text*."""
        if self.are_apart_from(features) or self.is_empty or not self._may_be_in(text):
            return
        for match in self._pattern.finditer(text):
            term = self._longest_first[(match.lastindex or 1) - 1]
            yield Finding(*match.span(), term.entity, 1.0, CALLER_SUPPLIED)

    def _may_be_in(self, text: str) -> bool:
        # Compiling the pattern is the largest cost, and most texts do not mention the customer.
        if not text.isascii():
            return True
        fold_case = text.lower()
        return any(each.anchor in fold_case for each in self._longest_first)

    @cached_property
    def _longest_first(self) -> list[_SearchTerm]:
        # Lazy: most customers' texts do not hold a single word of their identifiers.
        terms = {each.pattern: each for each in _terms(self._identifiers)}
        return sorted(terms.values(), key=_length, reverse=True)[:_MAX_TERMS]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        alternatives = "|".join(f"({each.pattern})" for each in self._longest_first)
        return re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE)


def _length(term: _SearchTerm) -> int:
    return len(term.pattern)


def _terms(identifiers: Iterable[str]) -> Iterator[_SearchTerm]:
    for identifier in identifiers:
        whole = " ".join(identifier.split())
        if "@" in whole:
            yield _literal(whole, "EMAIL_ADDRESS")
            yield from _parts(whole.partition("@")[0])
        elif _PHONE.fullmatch(whole):
            yield _SearchTerm(_phone(whole), "PHONE_NUMBER")
        elif _identifies(whole):
            is_name = any(map(str.isupper, whole)) or " " in whole
            is_person = is_name and not any(map(str.isdigit, whole))
            yield _literal(whole, "PERSON" if is_person else "SUBJECT_ID")
            yield from _parts(whole) if is_name else ()


def _parts(name: str) -> Iterator[_SearchTerm]:
    if _identifies(name) and len(name) > _SHORTEST_NUMBER:
        yield _literal(name, "SUBJECT_ID" if any(map(str.isdigit, name)) else "PERSON")
    for part in _NAME_PART.findall(name):
        if part.lower() not in _IDENTIFY_NOBODY:
            yield _literal(part, "PERSON")


def _identifies(term: str) -> bool:
    if term.isdigit():
        return len(term) >= _SHORTEST_NUMBER
    return len(term) >= _SHORTEST and term.lower() not in _IDENTIFY_NOBODY


def _literal(term: str, entity: str) -> _SearchTerm:
    words = term.split()
    # Ignoring case, a letter beyond ASCII may match one in it: the Kelvin sign matches k.
    anchor = max(words, key=len, default="").lower() if term.isascii() else ""
    return _SearchTerm(r"\s+".join(map(re.escape, words)), entity, anchor)


def _phone(number: str) -> str:
    significant = "".join(filter(str.isdigit, number))[-_SIGNIFICANT_DIGITS:]
    return r"\+?(?:\d[\s().\-/]{0,3}){0,6}" + _BETWEEN_DIGITS.join(significant)


def _words_of(identifiers: Iterable[str]) -> frozenset[str]:
    return frozenset(word.lower() for each in identifiers for word in _LETTERS.findall(each))
