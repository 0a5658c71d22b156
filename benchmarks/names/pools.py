"""Names and words of many languages: those of the packages `faker` and `pyspellchecker`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import faker.providers.person as people_of
from spellchecker import SpellChecker

from mnemoscope.memory.privacy.detectors.lexicon import LANGUAGES, read_sections
from mnemoscope.memory.privacy.detectors.word_lists import FAMILY_NAMES, GIVEN_NAMES

_LEAST_GIVEN, _LEAST_FAMILY = 20, 15
_BEYOND_CASED = "\u0530"
Names = tuple[list[str], list[str]]
"""Given names and family names."""


@cache
def faker_names() -> dict[str, Names]:
    """Return the names by locale of `faker`: ``de_DE``."""
    found: dict[str, Names] = {}
    for locale, provider in providers(people_of):
        given: set[str] = set()
        family: set[str] = set()
        for name, value in vars(provider).items():
            if name.startswith("first_name") and "romanized" not in name:
                given |= flat(value)
            elif name.startswith("last_name") and "romanized" not in name:
                family |= flat(value)
        if len(given) > _LEAST_GIVEN and len(family) > _LEAST_FAMILY:
            found[locale] = sorted(given), sorted(family)
    return found


@cache
def cased_names() -> dict[str, Names]:
    """Return the names of scripts with capitals, by locale, and of our lists as ``own_de``."""
    found = {each: names for each, names in faker_names().items() if is_cased(names[0][0])}
    for language in sorted(set(LANGUAGES) - {"world", "many"}):
        sections = read_sections(language)
        given, family = sections.get("given", ()), sections.get("family", ())
        if given and family and is_cased(given[0]):
            found[f"own_{language}"] = list(_capitalised(given)), list(_capitalised(family))
    found["own_en"] = sorted(_capitalised(GIVEN_NAMES)), sorted(_capitalised(FAMILY_NAMES))
    return found


@cache
def words_of(language: str) -> list[str]:
    """Return the commonest words of a language, those of names too, most common first."""
    counts: dict[str, int] = SpellChecker(language=language).word_frequency.dictionary
    words = [word for word in counts if len(word) > 2 and word.isalpha()]
    return sorted(words, key=lambda word: (-counts[word], word))


def providers(package: Any) -> Iterator[tuple[str, Any]]:
    """Yield the providers of a package of `faker`, each with its locale."""
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda each: each.name):
        if module.ispkg:
            yield module.name, importlib.import_module(f"{package.__name__}.{module.name}").Provider


def flat(found: object) -> set[str]:
    """Return the entries of a list of `faker`, without weights."""
    if not isinstance(found, dict | tuple | list | set):
        return set()
    words = {each if isinstance(each, str) else each[0] for each in found if each}
    return {word.strip() for word in words if word.strip() and "{" not in word}


def is_cased(word: str) -> bool:
    """Return whether a word is of a script with capitals."""
    return len(word) > 1 and word[0].isalpha() and word[0] < _BEYOND_CASED and "_" not in word


def _capitalised(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield "-".join(part[:1].upper() + part[1:] for part in name.split("-"))
