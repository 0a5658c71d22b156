"""
What the caller itself said about the data subject: the surest thing to look for, and the first.

An id, name, e-mail address or phone number is searched for as a whole, without regard to case, and
in parts: the names in a name, the local part of an address. What would hit everything (an ordinary
word, one or two characters) is not searched for: it identifies nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from .clues import Clues
from .finding import Finding
from .words import ORDINARY, listed

WHY = "supplied by the caller for the data subject"
"""Marks findings that no operator may keep."""

_ROLES = listed("""
    info support sales contact hello mail office user users test admin root noreply postmaster
    webmaster help team me
""")
_NOBODY = ORDINARY | _ROLES
_NAME_PART = re.compile(r"[^\W\d_]{3,}")
_LETTERS = re.compile(r"[^\W\d_]+")
_PHONE = re.compile(r"[+(]?\d[\d\s().\-/]{5,20}\d")
_BETWEEN_DIGITS = r"[\s().\-/]{0,3}"
_SHORTEST, _SHORTEST_NUMBER, _SIGNIFICANT_DIGITS = 2, 4, 9
_LIMIT = 64
_LABELS = 64
LABEL_CHARS = 64
"""Longest text that is taken for a label, in characters."""


class _Term(NamedTuple):
    """
    Something to search for.

    Attributes:
        pattern: Finds it.
        entity: What it is.
        anchor: In lower case, and in every ASCII text that holds it.
    """

    pattern: str
    entity: str
    anchor: str = ""

    def __repr__(self) -> str:
        """Never the identifier."""
        return "_Term(...)"


class Known:
    """
    The identifiers of one data subject, ready to be searched for.

    Args:
        identifiers: As the caller gave them. More than 64 parts are not searched for one by one.

    Attributes:
        clean: Short texts, as names of collections and features are, in which neither these nor
            any other personal data was found: the only ones that may be kept as they are.
    """

    def __init__(self, identifiers: Sequence[str]) -> None:
        self._identifiers = identifiers
        self._words = _clue_words(identifiers)
        self.key = "\0".join(identifiers)
        self.clean: set[str] = set()

    def __repr__(self) -> str:
        """Never the identifiers."""
        return "Known(...)"

    @property
    def is_nobody(self) -> bool:
        """True where there is nothing to search for."""
        return not self._longest_first

    def found_clean(self, text: str) -> None:
        """Take note that there is nothing in *text*. A few are kept, and then others."""
        if len(text) > LABEL_CHARS:
            return
        if len(self.clean) >= _LABELS:
            self.clean = set()
        self.clean.add(text)

    def find(self, text: str, clues: Clues) -> Iterator[Finding]:
        """Find the identifiers in *text*."""
        if not clues.any_digit and self._words.isdisjoint(clues.words):
            return
        if self.is_nobody or not self._may_be_in(text):
            return
        for match in self._pattern.finditer(text):
            term = self._longest_first[(match.lastindex or 1) - 1]
            yield Finding(*match.span(), term.entity, 1.0, WHY)

    def _may_be_in(self, text: str) -> bool:
        # To compile the pattern costs more than all else, and most customers are in no text.
        if not text.isascii():
            return True
        folded = text.lower()
        return any(each.anchor in folded for each in self._longest_first)

    @cached_property
    def _longest_first(self) -> list[_Term]:
        # Not before it is asked for: of most customers no text has so much as a word.
        terms = {each.pattern: each for each in _terms(self._identifiers)}
        return sorted(terms.values(), key=_length, reverse=True)[:_LIMIT]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        alternatives = "|".join(f"({each.pattern})" for each in self._longest_first)
        return re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE)


def _length(term: _Term) -> int:
    return len(term.pattern)


def _terms(identifiers: Iterable[str]) -> Iterator[_Term]:
    for identifier in identifiers:
        whole = " ".join(identifier.split())
        if "@" in whole:
            yield _literal(whole, "EMAIL_ADDRESS")
            yield from _parts(whole.partition("@")[0])
        elif _PHONE.fullmatch(whole):
            yield _Term(_phone(whole), "PHONE_NUMBER")
        elif _identifies(whole):
            is_name = any(map(str.isupper, whole)) or " " in whole
            is_person = is_name and not any(map(str.isdigit, whole))
            yield _literal(whole, "PERSON" if is_person else "SUBJECT_ID")
            yield from _parts(whole) if is_name else ()


def _parts(name: str) -> Iterator[_Term]:
    if _identifies(name) and len(name) > _SHORTEST_NUMBER:
        yield _literal(name, "SUBJECT_ID" if any(map(str.isdigit, name)) else "PERSON")
    for part in _NAME_PART.findall(name):
        if part.lower() not in _NOBODY:
            yield _literal(part, "PERSON")


def _identifies(term: str) -> bool:
    if term.isdigit():
        return len(term) >= _SHORTEST_NUMBER
    return len(term) >= _SHORTEST and term.lower() not in _NOBODY


def _literal(term: str, entity: str) -> _Term:
    words = term.split()
    # Without regard to case, a letter beyond ASCII may be one within it, as the Kelvin sign is k.
    anchor = max(words, key=len, default="").lower() if term.isascii() else ""
    return _Term(r"\s+".join(map(re.escape, words)), entity, anchor)


def _phone(number: str) -> str:
    significant = "".join(filter(str.isdigit, number))[-_SIGNIFICANT_DIGITS:]
    return r"\+?(?:\d[\s().\-/]{0,3}){0,6}" + _BETWEEN_DIGITS.join(significant)


def _clue_words(identifiers: Iterable[str]) -> frozenset[str]:
    return frozenset(word.lower() for each in identifiers for word in _LETTERS.findall(each))
