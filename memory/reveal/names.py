"""The names that one customer's agent was shown, and the pseudonyms that stand for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ...telemetry.event.sink_pseudonyms import PSEUDONYM
from ..privacy.detectors.lexicon import fold
from ..privacy.names.lists import small_names

_TOKEN = re.compile(rf"{PSEUDONYM.pattern}|\w+")
_WORD = re.compile(r"\w+")
_PERSON = "PERSON"
_MOST = 4_096
_LEAST_CHARS, _LEAST_DIGITS = 3, 5


class Place(NamedTuple):
    """
    A pseudonym in a redacted text. Its `repr` shows no original.

    Attributes:
        pseudonym: The pseudonym.
        original: What it replaced. None: the text had the pseudonym already.
        is_named: A shown name, which no detector had found.
    """

    pseudonym: str
    original: str | None
    is_named: bool = False

    def __repr__(self) -> str:
        """Return the pseudonym alone."""
        return f"Place({self.pseudonym})"


def entity_of(pseudonym: str) -> str:
    """Return the entity in a pseudonym: ``PERSON`` of ``<PERSON_4kq7wz2mxa>``."""
    return pseudonym[1:].rpartition("_")[0]


class ShownNames:
    """
    Names that were shown, found again where no detector does: a first name alone in a summary.

    A full name counts as a whole and by its parts, as long as one person has that part; a given
    name that is no word, written small too. What is no name by itself, such as a small word or a
    short number, does not count.
    """

    def __init__(self) -> None:
        self._whole: dict[str, str] = {}
        self._part: dict[str, str | None] = {}
        self._by_word: dict[str, list[tuple[str, int]]] = {}

    def __len__(self) -> int:
        return len(self._whole)

    def __repr__(self) -> str:
        """Return the number alone: the names are a person's."""
        return f"ShownNames({len(self)})"

    def clear(self) -> None:
        """Forget all of them."""
        for each in (self._whole, self._part, self._by_word):
            each.clear()

    def add(self, pseudonym: str, original: str) -> None:
        """Add what *pseudonym* was shown as."""
        if original in self._whole or len(self._whole) >= _MOST or not _is_telling(original):
            return
        self._whole[original] = pseudonym
        self._index(original)
        if entity_of(pseudonym) != _PERSON:
            return
        for part in filter(_is_name, original.split()):
            for form in (part, part.lower()) if fold(part) in small_names() else (part,):
                known = self._part.setdefault(form, pseudonym)
                if known != pseudonym:
                    self._part[form] = None  # two people have it
                self._index(form)

    def _index(self, form: str) -> None:
        first = _WORD.search(form)
        if first is None:
            return
        forms = self._by_word.get(first[0], [])
        if (form, first.start()) not in forms:
            # A new list: another thread may be reading the one that is there.
            longest_first = sorted((*forms, (form, first.start())), key=lambda each: -len(each[0]))
            self._by_word[first[0]] = longest_first

    def are_in(self, text: str) -> bool:
        """Return whether a shown name is in *text*."""
        return any(place.is_named for place, _start, _end in self._places(text, iter(())))

    def hide(self, text: str, finds: Iterable[tuple[str, str]]) -> tuple[str, Sequence[Place]]:
        """
        Return a redacted *text* with shown names replaced, and all places of pseudonyms in it.

        Args:
            text: The text, as the redactor made it.
            finds: The pseudonyms that the redactor put there, each with its original, in order.
        """
        pieces: list[str] = []
        places: list[Place] = []
        done = 0
        for place, start, end in self._places(text, iter(finds)):
            places.append(place)
            pieces += (text[done:start], place.pseudonym)
            done = end
        return "".join((*pieces, text[done:])), places

    def _places(
        self, text: str, finds: Iterator[tuple[str, str]]
    ) -> Iterator[tuple[Place, int, int]]:
        found, free = next(finds, None), 0
        for token in _TOKEN.finditer(text):
            word, start = token[0], token.start()
            if start < free:
                continue
            if word[0] == "<":
                is_found = found is not None and found[0] == word
                yield Place(word, found[1] if found and is_found else None), start, token.end()
                found, free = next(finds, None) if is_found else found, token.end()
            elif (named := self._named(text, word, start, free)) is not None:
                pseudonym, begin, free = named
                yield Place(pseudonym, text[begin:free], is_named=True), begin, free

    def _named(self, text: str, word: str, start: int, free: int) -> tuple[str, int, int] | None:
        """Return the pseudonym of the shown name around *word*, with its start and end."""
        for form, offset in self._by_word.get(word, ()):
            begin, end = start - offset, start - offset + len(form)
            if begin < free or not text.startswith(form, begin) or _goes_on(text, end):
                continue
            if (pseudonym := self._whole.get(form) or self._part.get(form)) is not None:
                return pseudonym, begin, end
        return None


def _is_telling(original: str) -> bool:
    if original.isdecimal():
        return len(original) >= _LEAST_DIGITS
    if original.isascii() and (len(original) < _LEAST_CHARS or original.islower()):
        return not original.isalpha() and len(original) >= _LEAST_CHARS
    return True


def _is_name(part: str) -> bool:
    return part.isalpha() and part[0].isupper() and len(part) >= _LEAST_CHARS


def _goes_on(text: str, end: int) -> bool:
    return end < len(text) and text[end - 1].isalnum() and text[end].isalnum()
