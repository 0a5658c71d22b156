"""
The user's own lists: terms that are never touched, and terms that are always replaced.

A file has one term a line: text, found as whole words whatever its case, or ``/…/``, a regular
expression. Empty lines and those that begin with ``#`` say nothing. In a list of what is replaced,
``ENTITY:`` may stand before a term; without it, the term is a ``SECRET``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import ConfigurationError
from .chunks import split_into_chunks
from .finding import DENIED, DIRECT, Finding
from .lazy_pattern import compile_later

_DEFAULT_ENTITY = "SECRET"
_ENTITY = compile_later(r"([A-Z_]{3,20}):\s*(?=\S)")
_WORD = compile_later(r"\w+")
_UNSPACED = compile_later(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
_PIECE_CHARS, _PIECE_OVERLAP = 2_000, 400
_MOST_WAYS = 8_000
"""Ways in which a pattern may be tried at one place: one open end, and a little more."""


class _Term(NamedTuple):
    """
    A term that begins with a word.

    Attributes:
        pattern: Finds it where that word is.
        entity: What it is replaced as.
    """

    pattern: re.Pattern[str]
    entity: str

    def __repr__(self) -> str:
        """Hide the term."""
        return "_Term(...)"


class TermList:
    """
    Terms and patterns of one file, searchable.

    Args:
        lines: Number, entity and term of each line that says something.

    Raises:
        ValueError: A pattern is none, or could take long. The message has its line's number.
    """

    def __init__(self, lines: Iterable[tuple[int, str, str]] = ()) -> None:
        self._by_word: dict[str, list[_Term]] = {}
        self._anywhere: list[tuple[re.Pattern[str], str]] = []
        for number, entity, term in lines:
            if len(term) > len("//") and term.startswith("/") and term.endswith("/"):
                self._anywhere.append((_pattern(term[1:-1], number), entity))
            else:
                self._add_text(term, entity)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._by_word or self._anywhere)

    def __repr__(self) -> str:
        """Hide the terms."""
        return "TermList(...)"

    def find(self, text: str) -> Iterator[Finding]:
        """Find the terms in *text*."""
        if self._by_word:
            for word in _WORD.finditer(text):
                for term in self._by_word.get(word[0].lower(), ()):
                    if match := term.pattern.match(text, word.start()):
                        yield Finding(*match.span(), term.entity, 1.0, DENIED)
        for pattern, entity in self._anywhere:
            for offset, piece in split_into_chunks(text, size=_PIECE_CHARS, overlap=_PIECE_OVERLAP):
                for match in pattern.finditer(piece):
                    start, end = match.span()
                    if end > start:
                        yield Finding(offset + start, offset + end, entity, 1.0, DENIED)

    def _add_text(self, term: str, entity: str) -> None:
        escaped = r"\s+".join(map(re.escape, term.split()))
        words = _WORD.findall(term.lower())
        if not words or _UNSPACED.search(term) or not term[0].isalnum():
            self._anywhere.append((re.compile(escaped, re.IGNORECASE), entity))
            return
        ends = r"(?!\w)" if term[-1].isalnum() else ""
        pattern = re.compile(rf"(?<!\w){escaped}{ends}", re.IGNORECASE)
        self._by_word.setdefault(words[0], []).append(_Term(pattern, entity))


class TermLists(NamedTuple):
    """
    The two lists of a redactor.

    Attributes:
        allowed: What is never touched.
        denied: What is always replaced.
    """

    allowed: TermList = TermList()
    denied: TermList = TermList()


NO_LISTS = TermLists()


def read_term_lists(allowed: Path | None, denied: Path | None) -> TermLists:
    """
    Read the files of the two lists.

    Raises:
        ConfigurationError: One cannot be read, or a line of it is wrong. The message has the
            variable and the line's number, never what is in the line.
    """
    return TermLists(
        _read(allowed, "MNEMOSCOPE_PII_ALLOW", names_entities=False),
        _read(denied, "MNEMOSCOPE_PII_DENY", names_entities=True),
    )


def _read(path: Path | None, variable: str, *, names_entities: bool) -> TermList:
    if path is None:
        return TermList()
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{variable}: the file cannot be read ({type(error).__name__}): expected UTF-8 text "
            "with one term a line"
        ) from None
    try:
        return TermList(_lines(text, names_entities=names_entities))
    except ValueError as error:
        raise ConfigurationError(f"{variable}: {error}") from None


def _lines(text: str, *, names_entities: bool) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        term, entity = line.strip(), _DEFAULT_ENTITY
        if not term or term.startswith("#"):
            continue
        if names_entities and (named := _ENTITY.match(term)):
            entity, term = named[1], term[named.end() :]
            if entity not in DIRECT:
                known = ", ".join(sorted(DIRECT))
                raise ValueError(f"line {number}: unknown entity: expected one of {known}")
        yield number, entity, term


def _pattern(source: str, number: int) -> re.Pattern[str]:
    try:
        ways = _ways(import_module("re._parser").parse(source))
        compiled = re.compile(source)
    except (re.error, OverflowError, RecursionError):
        raise ValueError(
            f"line {number}: no regular expression: expected one as Python has them"
        ) from None
    if ways > _MOST_WAYS:
        raise ValueError(
            f"line {number}: this pattern could take long: expected no repetition inside another "
            "one and at most one without an end; write {1,20} for + or *"
        )
    return compiled


def _ways(parsed: Any) -> int:
    """Return in how many ways *parsed* may be tried at one place of a piece, or a bound of it."""
    ways = 1
    for operation, argument in parsed:
        ways = min(ways * _ways_of(str(operation), argument), _MOST_WAYS + 1)
    return ways


def _ways_of(operation: str, argument: Any) -> int:
    if operation in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
        least, most, body = int(argument[0]), min(int(argument[1]), _PIECE_CHARS), argument[2]
        inner = _ways(body)
        repeated = 1 if inner == 1 else inner ** min(most, _MOST_WAYS.bit_length())
        return (max(most, least) - least + 1) * repeated
    if operation == "BRANCH":
        return sum(map(_ways, argument[1]))
    if operation in {"GROUPREF", "GROUPREF_EXISTS"}:
        return _MOST_WAYS + 1
    if operation in {"SUBPATTERN", "ATOMIC_GROUP", "ASSERT", "ASSERT_NOT"}:
        return _ways(argument[-1] if isinstance(argument, tuple) else argument)
    return 1
