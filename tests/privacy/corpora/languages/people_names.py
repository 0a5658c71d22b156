"""Persons made of a language's lists, and the ways in which a text may name one."""

from __future__ import annotations

import functools
import random
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from .inflection import feminine, inflect
from .language_data import LanguageData

STYLES = frozenset(
    {"full", "given", "family", "nick", "listed", "official", "formal", "initial", "initials"}
)
ORDERS = frozenset({"full", "official", "formal"})
"""The styles whose order of names a language's file may say."""

_PATTERNS = {
    "full": ("{given} {family}",),
    "given": ("{given}",),
    "family": ("{family}",),
    "nick": ("{nick}",),
    "listed": ("{family}, {given}",),
    "official": ("{family} {given}",),
    "formal": ("{given} {family}",),
    "initial": ("{initial}. {family}",),
    "initials": ("{family} {initial}. {middle_initial}.",),
}
_INFLECTED_WHOLE = frozenset({"tr", "fi"})
"""Languages in which only the last word of a name takes the case."""


@dataclass(frozen=True, slots=True)
class Person:
    """
    Somebody who does not exist.

    Attributes:
        woman: Whether names take the feminine form.
        parts: ``given``, ``family``, ``family2``, ``middle`` and ``nick``.
        patterns: The order of the parts in each style, fixed for the person.
    """

    woman: bool
    parts: Mapping[str, str]
    patterns: Mapping[str, str] = field(default_factory=dict)


def make_person(data: LanguageData, rng: random.Random, *, gender: str | None) -> Person:
    """A person of a language and half."""
    woman = gender == "f" if gender else rng.random() < 0.5
    suffix = "f" if woman else "m"
    given, _, nick = _pick(data, rng, f"given_{suffix}").partition("~")
    families = [_family(data, rng, woman=woman) for _ in range(2)]
    middle = _pick(data, rng, f"middle_{suffix}") if f"middle_{suffix}" in data.values else ""
    parts = {
        "given": given,
        "nick": nick or given,
        "family": families[0],
        "family2": families[1],
        "middle": middle,
        "initial": given[0],
        "middle_initial": middle[:1],
    }
    patterns = {
        style: rng.choice(data.values.get(style, default) if style in ORDERS else default)
        for style, default in _PATTERNS.items()
    }
    return Person(woman, parts, patterns)


def name_of(person: Person, language: str, *, style: str, case: str | None) -> str:
    """A person's name in a style and case."""
    pattern = person.patterns[style]
    if case is None:
        return pattern.format_map(person.parts)
    if language in _INFLECTED_WHOLE:
        name = pattern.format_map(person.parts)
        head, space, last = name.rpartition(" ")
        return head + space + inflect(language, last, woman=person.woman, case=case)
    return re.sub(
        r"\{(given|nick|family|family2|middle)\}",
        lambda slot: inflect(language, person.parts[slot[1]], woman=person.woman, case=case),
        pattern,
    ).format_map(person.parts)


def _pick(data: LanguageData, rng: random.Random, key: str) -> str:
    return rng.choice(data.values[key])


def _family(data: LanguageData, rng: random.Random, *, woman: bool) -> str:
    family = _pick(data, rng, "family")
    return feminine(data.language, family) if woman else family


@functools.cache
def _transliterated() -> dict[int, str]:
    pairs = files(__package__).joinpath("data", "transliteration.txt").read_text(encoding="utf-8")
    return str.maketrans(dict(pair.split("=") for pair in pairs.split()))


def latin(name: str) -> str:
    """A name as an address writes it: Latin lower case letters, without accents."""
    bare = "".join(
        letter
        for letter in unicodedata.normalize("NFKD", name.casefold())
        if not unicodedata.combining(letter)
    )
    plain = bare.translate(_transliterated())
    return "".join(letter for letter in plain if letter.isascii() and letter.isalnum())
