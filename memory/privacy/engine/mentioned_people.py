"""
One person, one pseudonym: what a mention of somebody is derived from.

``MELANIE``, ``Melanie's``, ``Ms Melanie`` and ``Mel`` are one name. A part of a full name stands
for the person whose full name was seen before it; where two have that part, for neither. The
pseudonym of a full name never depends on what was seen, so two full names are always two people.
"""

# ruff: noqa: RUF001 - letters of Turkish are meant

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from ..detectors.lazy_pattern import compile_later
from ..detectors.name_words import FUNCTION_WORDS, SUFFIXES, TITLES
from ..detectors.word_lists import FAMILY_NAMES, GIVEN_NAMES, ORDINARY, read_words

_MOST = 512
"""Names that are remembered of one customer; then it begins anew."""

_UNDECIDED = "?"
_AROUND = ".,;:!?\"'\u2019\u2018\u201c\u201d()[]<>"
_TURKISH_SUFFIX = compile_later(
    r"['\u2019](?:y?[ıiuüae]|n?[ıiuü]n|[nd]?[dt][ae](?:n|ki\w{0,5})?|y?l[ae]|l[ae]r\w{0,6}|c[ae]"
    r"|y?(?:[dt][ıiuü]|m[ıiuü]ş)\w{0,3}|y?ken|s[ıiuü]z)(?!\w)",
    re.IGNORECASE,
)
"""What Turkish joins to a name with an apostrophe: ``'nin``, ``'ya``, ``'daki``."""

_ACCENTS = range(0x300, 0x370)


class _ShortForm(NamedTuple):
    names: tuple[str, ...]
    default: str | None


class MentionedPeople:
    """
    The people whom texts about one customer have mentioned, by their pseudonyms alone.

    What a name stood for when it was first met it stands for until two people have it. Not locked:
    two threads that meet a name at once may remember it twice.
    """

    def __init__(self) -> None:
        self._whole_of: dict[str, frozenset[str]] = {}
        self._meant: dict[str, str] = {}
        self._given: set[str] = set()

    def meet(self, whole: str, parts: tuple[str, ...]) -> None:
        """Remember that a full name has *parts*."""
        self._bound()
        for part in parts:
            self._whole_of[part] = self._whole_of.get(part, frozenset()) | {whole}
            if self._meant.get(part) not in {None, part, whole}:
                del self._meant[part]  # two people have it

    def meet_given(self, given: str) -> None:
        """Remember that a given name was written in full."""
        self._bound()
        self._given.add(given)

    def was_given(self, given: str) -> bool:
        """Return whether the given name was written in full."""
        return given in self._given

    def meaning_of(self, part: str) -> str:
        """Return the only full name with this *part*, or the part itself."""
        meant = self._meant.get(part)
        if meant is None:
            whole = self._whole_of.get(part, frozenset())
            meant = self._meant[part] = next(iter(whole)) if len(whole) == 1 else part
        return meant

    def _bound(self) -> None:
        if len(self._whole_of) + len(self._given) + len(self._meant) > _MOST:
            for each in (self._whole_of, self._given, self._meant):
                each.clear()


class PersonPseudonyms:
    """
    Pseudonyms of people in one tenant.

    Args:
        make: Returns the pseudonym of a canonical name.
        people: Whom texts about the customer have mentioned. None: there is no customer.
    """

    def __init__(self, make: Callable[[str], str], people: MentionedPeople | None) -> None:
        self._make = make
        self._people = people

    def of(self, mention: str) -> str:
        """Return the pseudonym of whom *mention* names."""
        words = _words(mention)
        first = words[0] if words else mention
        short = _short_forms().get(first)
        if short is not None:
            words = (self._written_out(first, short), *words[1:])
        elif self._people is not None and first in GIVEN_NAMES:
            self._people.meet_given(self._make(first))
        whole = self._make(" ".join(words))
        if self._people is None:
            return whole
        if len(words) == 1:
            return self._people.meaning_of(whole)
        if _is_full_name(words):
            self._people.meet(whole, (self._make(words[0]), self._make(words[-1])))
        return whole

    def _written_out(self, first: str, short: _ShortForm) -> str:
        people = self._people
        if people is not None:
            seen = [each for each in short.names if people.was_given(self._make(each))]
            if len(seen) == 1:
                return seen[0]
        return short.default or first


def _words(mention: str) -> tuple[str, ...]:
    """Return the words of a name, as they are the same in all its spellings."""
    words = [each for part in _folded(mention).split() if (each := _bare(part))]
    named = [each for each in words if each not in TITLES and each not in SUFFIXES]
    full = [each for each in named if len(each) > 1 or not each.isascii()]
    kept = full or named or words
    if len(kept) > 1 and not GIVEN_NAMES.isdisjoint(kept):
        kept = [each for each in kept if not _is_no_name(each)] or kept
    return tuple(kept)


def _is_no_name(word: str) -> bool:
    is_named = word in GIVEN_NAMES or word in FAMILY_NAMES
    return word in FUNCTION_WORDS and not is_named


def _folded(mention: str) -> str:
    if mention.isascii():
        return mention.casefold()
    apart = unicodedata.normalize("NFKD", mention)
    letters = "".join(each for each in apart if ord(each) not in _ACCENTS)
    return unicodedata.normalize("NFKC", letters).casefold()


def _bare(word: str) -> str:
    word = word.strip(_AROUND)
    for ending in ("'s", "\u2019s"):
        word = word.removesuffix(ending)
    suffix = _TURKISH_SUFFIX.search(word)
    return word[: suffix.start()] if suffix and suffix.end() == len(word) else word


def _is_full_name(words: tuple[str, ...]) -> bool:
    """Return whether it is a name of somebody, not a name and the word or the name after it."""
    last = words[-1]
    if words[0] in ORDINARY and words[0] not in GIVEN_NAMES:
        return False
    return last in FAMILY_NAMES or not (last in ORDINARY or last in GIVEN_NAMES)


def load() -> None:
    """Read the short forms of names now, so that no call waits for them."""
    _short_forms()


@cache
def _short_forms() -> dict[str, _ShortForm]:
    forms: dict[str, _ShortForm] = {}
    for short, *names in map(str.split, read_words("nicknames")):
        decided = names[0] != _UNDECIDED
        forms[short] = _ShortForm(
            tuple(names if decided else names[1:]), names[0] if decided else None
        )
    return forms
