"""A word of a text, and words that stand close together: what the model is given."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from ..detectors.english_words import is_english_word
from ..detectors.lexicon import fold
from .lists import NAMES, plain_kinds, word_table

THINGS = frozenset("tbPpqxn")
_COMMON = frozenset("oWk")
_MOST_LISTED = 10_000
_ACRONYM, _LONGEST_NUMBER, _MOST_KINDS = 3, 4, 6


def _shape(text: str) -> str:
    if not text[:1].isalpha():
        return "."
    is_capital = text[0].isupper()
    if len(text) == 1:
        return "X1" if is_capital else "x1"
    if text.islower():
        return "x"
    if text.isupper():
        return "XX" if len(text) <= _ACRONYM else "XXX"
    if text[1:].islower():
        return "Xx" if is_capital else "xXx"
    return "X-x" if "-" in text or "'" in text or "\u2019" in text else "xXx"


def _name(text: str, kinds: str) -> str:
    for letter in "gfGF":
        if letter in kinds:
            return letter
    if len(text) == 1 and text.isalpha():
        return "i"
    if not THINGS.isdisjoint(kinds):
        return "b"
    if "W" in kinds or "o" in kinds:
        return "w"
    return "s" if text.islower() else "u"


class Word:
    """
    A word, number or sign, and the attributes that it gives to itself and to its neighbours.

    Attributes:
        text: As it is written.
        folded: As lists have it: in lower case, without accents.
        kinds: A letter for each list that it is in.
        is_hidden: It is taken to be in no list of names.
        shape: Its capitals.
        name: The kind of name or thing that lists say it is, in one letter.
    """

    def __init__(self, text: str, folded: str, kinds: str, *, is_hidden: bool) -> None:
        self.text = text
        self.folded = folded
        self.kinds = kinds
        self.is_hidden = is_hidden
        self.shape = _shape(text)
        self.name = _name(text, kinds)

    def __repr__(self) -> str:
        """Hide the word."""
        return f"Word({len(self.text)} characters)"

    @cached_property
    def before(self) -> list[str]:
        """Attributes of the word behind it."""
        few = self.kinds[:_MOST_KINDS]
        return [f"b={self.folded}", f"bs={self.shape}", *(f"bk:{each}" for each in few)]

    @cached_property
    def before_2(self) -> list[str]:
        """Attributes of the word after next."""
        return [f"bb={self.folded}", *(f"bbk:{each}" for each in self.kinds[:_MOST_KINDS])]

    @cached_property
    def after(self) -> list[str]:
        """Attributes of the word in front of it."""
        few = self.kinds[:_MOST_KINDS]
        return [f"a={self.folded}", f"as={self.shape}", *(f"ak:{each}" for each in few)]

    @cached_property
    def in_english(self) -> list[str]:
        """Its own attributes in an English line: a word of another language may be a name there."""
        return [f"e={self.folded}", *self._own]

    @cached_property
    def in_others(self) -> list[str]:
        """Its own attributes in a line of another language, or of none."""
        return [f"w={self.folded}", *self._own]

    @cached_property
    def _own(self) -> list[str]:
        folded, kinds, shape = self.folded, self.kinds, self.shape
        own = [f"s={shape}", f"k={kinds}", *(f"k:{each}" for each in kinds)]
        own += [f"-{size}={folded[-size:]}" for size in (1, 2, 3, 4)]
        own.append(f"+3={folded[:3]}")
        is_english = self.text.isascii() and is_english_word(folded)
        own.append(f"en={is_english}{shape}{self.name}")
        if NAMES.isdisjoint(kinds) and not self.is_hidden:
            if plain := plain_kinds(folded):
                own.append(f"k~{plain}")
            if "-" in folded or "'" in folded:
                table = word_table()
                parts = [table.get(each, "") for each in folded.replace("'", "-").split("-")]
                own.append("parts=" + "+".join(_name("-", each) for each in parts))
        return own


OUTSIDE = Word("", "", "", is_hidden=False)


class Words:
    """
    The words of one text, each read once.

    Args:
        hidden: Folded words that are taken to be in no list of names: so the model learns that not
            all names are in lists.
    """

    def __init__(self, hidden: frozenset[str] = frozenset()) -> None:
        self._hidden = hidden
        self._known: dict[str, Word] = {}

    def read(self, text: str) -> Word:
        """Return a word, number or sign."""
        word = self._known.get(text)
        if word is None:
            word = self._known[text] = _LISTED.get(text) or self._look_up(text)
        return word

    def _look_up(self, text: str) -> Word:
        if not text[0].isalpha() or any(map(str.isdigit, text)):
            kind = "0" if text.isalnum() else "#" if text == "\n" else text
            folded = text if text != "\n" and len(text) <= _LONGEST_NUMBER else kind
            return Word(text, folded, kind, is_hidden=False)
        folded = fold(text)
        kinds = word_table().get(folded, "")
        is_hidden = folded in self._hidden
        if is_hidden:
            kinds = "".join(each for each in kinds if each not in NAMES)
        word = Word(text, folded, kinds, is_hidden=is_hidden)
        if _COMMON.intersection(kinds) and not self._hidden and len(_LISTED) < _MOST_LISTED:
            _LISTED[text] = word
        return word


_LISTED: dict[str, Word] = {}
"""Words of the lists of common words, which say nothing of anybody: read once a process."""


class Token(NamedTuple):
    """
    A word in its place.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last.
        word: The word.
    """

    start: int
    end: int
    word: Word


class Sequence(NamedTuple):
    """
    Items that stand close together.

    Attributes:
        tokens: The items.
        joined: Of each, whether it may go on with the name that the item before it is part of.
        attributes: Of each, what is known of it and of its neighbours.
    """

    tokens: list[Token]
    joined: list[bool]
    attributes: list[list[str]]

    def __repr__(self) -> str:
        """Hide the words."""
        return f"Sequence({len(self.tokens)} items)"
