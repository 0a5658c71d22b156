"""A word of a text, and words that stand close together: what the model is given."""

from __future__ import annotations

from enum import IntEnum
from functools import cache, cached_property
from keyword import iskeyword
from typing import NamedTuple

from ..detectors.english_words import is_english_word
from ..detectors.lexicon import fold
from .lists import NAMES, plain_kinds, small_names, word_table
from .usage import UsedWord

THINGS = frozenset("tbPpqxn")
_MAY_BE = frozenset("gfew")
_UNCASED, _UNSPACED = "\u0590", "\u0e00"
_MOST_KEPT, _LONGEST_KEPT = 8_192, 32
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


class Candidacy(IntEnum):
    """
    Whether a word may be an item, as far as the word itself tells.

    Attributes:
        NONE: Never: a sign, a number, or a small or ordinary word.
        ITEM: Always.
        UNCASED: It has no capitals: near names.
        SMALL: Where it goes on with a name, or is announced.
        SMALL_NAME: A name written small, unless it is a part of an identifier.
    """

    NONE = 0
    ITEM = 1
    UNCASED = 2
    SMALL = 3
    SMALL_NAME = 4


def _candidacy(text: str, folded: str, kinds: str) -> Candidacy:
    first = text[:1]
    if not first.isalpha() or kinds == "0":
        return Candidacy.NONE
    is_common = "o" in kinds or "k" in kinds
    if first.isupper():
        is_letter = len(text) == 1 and text != "I"
        is_item = not is_common or is_letter or not _MAY_BE.isdisjoint(kinds)
        return Candidacy.ITEM if is_item else Candidacy.NONE
    if first >= _UNCASED:
        return Candidacy.UNCASED if first < _UNSPACED else Candidacy.NONE
    if iskeyword(text) and "a" not in kinds:
        return Candidacy.NONE  # Else and Elif are names, and begin lines of most code
    if folded in small_names():
        return Candidacy.SMALL_NAME
    return Candidacy.NONE if "o" in kinds and "a" not in kinds else Candidacy.SMALL


CAPITAL, ENGLISH, SMALL, LETTER, MARK = "CESLM"
"""Words by their first character: a capital, small ones in English or not, others; and signs."""


def _sort(text: str, kinds: str, shape: str) -> str:
    if not text[:1].isalpha():
        return MARK
    if text[0].isupper():
        return CAPITAL
    if shape not in {"x", "x1"}:
        return LETTER
    return ENGLISH if "o" in kinds else SMALL


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
        candidacy: Whether it may be an item of a sequence.
        sort: `CAPITAL`, `ENGLISH`, `SMALL`, `LETTER` or `MARK`.
    """

    def __init__(self, text: str, folded: str, kinds: str, *, is_hidden: bool) -> None:
        self.text = text
        self.folded = folded
        self.kinds = kinds
        self.is_hidden = is_hidden
        self.shape = _shape(text)
        self.name = _name(text, kinds)
        self.candidacy = _candidacy(text, folded, kinds)
        self.sort = _sort(text, kinds, self.shape)
        self._used: dict[str, UsedWord] = {}

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

    def used_in(self, language: str) -> UsedWord:
        """Return the word as running text of a *language* uses it."""
        used = self._used.get(language)
        if used is None:
            used = self._used[language] = UsedWord(
                self.text, self.shape, self.name, language, is_hidden=self.is_hidden
            )
        return used

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


NEWLINE = Word("\n", "#", "#", is_hidden=False)


class Words(dict[str, Word]):
    """
    Words, numbers and signs by their text, each read at its first use.

    Args:
        hidden: Folded words that are taken to be in no list of names: so the model learns that not
            all names are in lists.
    """

    def __init__(self, hidden: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self._hidden = hidden

    def __missing__(self, text: str) -> Word:
        """Read a word, and keep it unless it is long."""
        word = NEWLINE if text == "\n" else self._read(text)
        if len(text) <= _LONGEST_KEPT:
            if len(self) >= _MOST_KEPT:
                self.clear()
            self[text] = word
        return word

    def __repr__(self) -> str:
        """Hide the words."""
        return f"Words({len(self)} words)"

    def _read(self, text: str) -> Word:
        if not text[0].isalpha() or any(map(str.isdigit, text)):
            kind = "0" if text.isalnum() else text
            folded = text if len(text) <= _LONGEST_NUMBER else kind
            return Word(text, folded, kind, is_hidden=False)
        folded = fold(text)
        kinds = word_table().get(folded, "")
        is_hidden = folded in self._hidden
        if is_hidden:
            kinds = "".join(each for each in kinds if each not in NAMES)
        return Word(text, folded, kinds, is_hidden=is_hidden)


@cache
def shared_words() -> Words:
    """Return the words of this process: what is known of a word is the same in every text."""
    return Words()


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
        model: The model that has learned from such lines.
    """

    tokens: list[Token]
    joined: list[bool]
    attributes: list[list[str]]
    model: str

    def __repr__(self) -> str:
        """Hide the words."""
        return f"Sequence({len(self.tokens)} items)"
