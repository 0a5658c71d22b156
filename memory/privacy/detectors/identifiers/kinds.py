"""
A kind of identifier: the row of a table that says what it looks like and how it is checked.

A shape is written as the number usually is: ``9`` stands for a digit, ``A`` for a letter, ``X`` for
either, ``[…]`` for one of its characters, other letters (in lower case) and digits for themselves;
``{2,3}`` behind one of them says how often; everything else separates groups. ``|`` separates
alternatives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import product

from ..lazy_pattern import compile_later
from .check_digits import Check, unchecked

SEPARATORS = r"[ .\-/()\u00a0\u00b7\u2013]"
ALNUM = r"[0-9A-Za-z\u00c0-\u024f\u0370-\u058f\u0660-\u0669\u06f0-\u06f9\u0966-\u096f]"
"""Letters of scripts with spaces between words, and digits: a number does not touch them."""

_HEX = "[0-9A-Fa-f]" * 4
_LABEL_END = (
    r"""(?:[ _-]?(?:number|num|no|nr|id)\b\.?)?["'\u201d]?[ ]?(?:[:=#]|(?:is|es|é|est|ist)\b)"""
)
_ATOM = compile_later(r"(?:\[[^\]]+\]|[^\[])(?:\{\d(?:,\d)?\})?")
_CLASSES = {"9": r"\d", "A": "[A-Z]", "X": "[A-Z0-9]"}
_SIGNATURE_OF = {"9": "9", "A": "A", "X": "9A"}
PREFIX_CHARS = 5
"""Letters of a word from which on it also stands for what it begins: ``isikukoodi``."""

UNSPACED = compile_later(r"[\u0590-\u08ff\u0900-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts whose words are written together, or have particles before them."""


class Bare(Enum):
    """
    Whether a number is recognised where no word says what it is.

    Attributes:
        NEVER: A word has to be near.
        GROUPED: If it is grouped as its shape is.
        ALWAYS: Shape and check digits leave no doubt.
    """

    NEVER = "never"
    GROUPED = "grouped"
    ALWAYS = "always"


@dataclass(frozen=True, eq=False)
class IdentifierKind:
    """
    A kind of identifier.

    Attributes:
        name: What it is called in explanations.
        country: ISO 3166 code; several with ``/`` between them.
        entity: Its entity.
        bare: Whether it is recognised without a word.
        shape: See the module.
        check: Whether its digits agree with one another.
        words: Words that announce it, with ``|`` between them. A ``~`` marks those that mean other
            things too: beside them the check has to hold; a ``+`` short ones that need neither
            capitals nor a colon.
    """

    name: str
    country: str
    entity: str
    bare: Bare
    shape: str
    check: Check
    words: str

    @property
    def label(self) -> str:
        """The name and country of this kind, as explanations print them."""
        return self.name if self.country == "-" else f"{self.name} ({self.country})"

    @property
    def is_checked(self) -> bool:
        """Whether it has check digits, or others that cannot be any."""
        return self.check is not unchecked

    @cached_property
    def loose_patterns(self) -> tuple[re.Pattern[str], ...]:
        """Find it in text in either case, however its characters are grouped."""
        # A pattern that begins with a class is searched for faster than one with alternatives.
        return tuple(re.compile(_loose(shape)) for shape in self._shapes)

    @cached_property
    def compact_pattern(self) -> re.Pattern[str]:
        """Matches it as a whole, in capitals and without separators."""
        return re.compile("|".join("".join(_classes(shape)) for shape in self._shapes))

    @property
    def plain_words(self) -> list[str]:
        """The announcing words, without their marks."""
        return [word.lstrip("~+") for word in self.words.split("|")]

    @property
    def beginnings(self) -> Iterator[tuple[str, ...]]:
        """For each word that announces it, the first letters of all words of a text it takes."""
        for word in self.plain_words:
            yield from _beginnings(word)

    @cached_property
    def near(self) -> re.Pattern[str]:
        """Pattern of the words that announce an identifier of this kind."""
        return _pattern_of(self.plain_words, _word_pattern)

    @cached_property
    def sure(self) -> re.Pattern[str] | None:
        """Pattern of the unmistakable words: a number beside one counts without its check digit."""
        sure = [word for word in self.words.split("|") if not word.startswith("~")]
        return _pattern_of(sure, _sure_pattern) if sure else None

    def signatures(self) -> Iterator[str]:
        """Yield the signatures of the forms in which it is recognised without a word."""
        for shape in self._shapes:
            if self.bare is not Bare.NEVER:
                yield from _signatures(shape)
            if self.bare is Bare.ALWAYS:
                yield from _signatures(re.sub(r"[^\w\[\]]", "", shape))

    @property
    def _shapes(self) -> list[str]:
        return self.shape.split("|")


def _loose(shape: str) -> str:
    """Return the pattern of *shape*, which begins with a class: so it is searched for faster."""
    characters = [
        (_either_case(atom), int(least or 1), int(most or least or 1))
        for atom, least, most in map(_repetition, _classes(shape))
    ]
    first = characters[0][0]
    # What may be all letters does not go on over a space, or it would take words in.
    separators = SEPARATORS.replace(" ", "") if "X{" in shape else SEPARATORS
    pieces = (
        f"{char}(?:{separators}?{char}){{{least - 1},{most - 1}}}" if most > 1 else char
        for char, least, most in characters
    )
    rest = f"{separators}?".join(pieces).removeprefix(first)
    return rf"{first}(?<!{ALNUM}.)(?<!{_HEX}-.){rest}(?!{ALNUM}|-{_HEX})"


def _repetition(atom: str) -> tuple[str, str, str]:
    """Return an atom of a shape, and how often it stands there at least and at most."""
    char, _, counts = atom.partition("{")
    least, _, most = counts.rstrip("}").partition(",")
    return char, least, most


def _either_case(char: str) -> str:
    inside = char.strip("[]")
    return char if char.startswith("\\d") else f"[{inside}{inside.lower()}]"


def _classes(shape: str) -> list[str]:
    atoms: list[str] = _ATOM.findall(shape)
    return [
        _CLASSES.get(atom[0], atom[0].upper()) + atom[1:] if atom[0] != "[" else atom
        for atom in atoms
        if atom[0] == "[" or atom[0].isalnum()
    ]


def _signatures(shape: str) -> Iterator[str]:
    """Yield what `SIGNATURE` makes of the numbers of *shape*."""
    choices = [_SIGNATURE_OF.get(atom) or _signature_of(atom) for atom in _ATOM.findall(shape)]
    for chosen in product(*choices):
        yield "".join(chosen)


def _signature_of(atom: str) -> str:
    inside = [char for char in re.sub(r"[A-Z0-9]-(?=[A-Z0-9])", "", atom) if char.isalnum()]
    if not inside:
        return atom
    return ("9" if any(map(str.isdigit, inside)) else "") + (
        "A" if any(map(str.isalpha, inside)) else ""
    )


def _beginnings(word: str) -> Iterator[tuple[str, ...]]:
    """Yield the beginnings of the words of a text without which *word* is not in it."""
    parts = re.findall(r"[^\W\d_]+", word)
    if parts and not UNSPACED.search(word):
        yield tuple(part[:PREFIX_CHARS] for part in parts)
        yield ("".join(parts)[:PREFIX_CHARS],)


def _pattern_of(words: list[str], pattern_of: Callable[[str], str]) -> re.Pattern[str]:
    return compile_later("|".join(map(pattern_of, words)), re.IGNORECASE)


def _word_pattern(word: str) -> str:
    if UNSPACED.search(word):
        return re.escape(word)
    joint = r"\.[ ]?" if "." in word else r"[\W_]{0,3}"
    parts = re.findall(r"[^\W_]+", word)
    begins = len(parts[-1]) >= PREFIX_CHARS
    rest = r"[^\W\d_]{0,12}" if begins else r"(?![^\W_])"
    return rf"(?<![^\W_]){joint.join(map(re.escape, parts))}{rest}"


def _sure_pattern(word: str) -> str:
    """Return the pattern of a word that short words meet only in capitals or before a colon."""
    pattern = _word_pattern(word.lstrip("+"))
    if not word.isalpha() or len(word) >= PREFIX_CHARS or UNSPACED.search(word):
        return pattern
    return rf"(?<![^\W_])(?-i:{word.upper()})(?![^\W_])|{pattern}(?={_LABEL_END})"
