"""
Names, places and words of many languages: of `data/persons/many.txt` and of made sentences.

They are those of the packages `faker` and `pyspellchecker`, which the product does not need.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import faker.providers.address as places_of
import faker.providers.person as people_of
from spellchecker import SpellChecker

from mnemoscope.memory.privacy.detectors.lexicon import LANGUAGES, read_sections
from mnemoscope.memory.privacy.detectors.word_lists import FAMILY_NAMES, GIVEN_NAMES

_PLACES = ("cities", "city_names", "countries", "states", "provinces", "regions", "districts")
_SPELLED = ("de", "es", "fr", "it", "nl", "pt")
_MOST_WORDS, _LEAST_GIVEN, _LEAST_FAMILY = 8_000, 20, 15
_BEYOND_CASED = "\u0530"
_ORIGIN = (
    "# Names, places and common words of many languages. Origin: the lists of the PyPI packages"
    " faker 40 (MIT) and pyspellchecker 0.9 (MIT)."
)

Names = tuple[list[str], list[str]]
"""Given names and family names."""


@cache
def faker_names() -> dict[str, Names]:
    """Return the names by locale of `faker`: ``de_DE``."""
    found: dict[str, Names] = {}
    for locale, provider in _providers(people_of):
        given: set[str] = set()
        family: set[str] = set()
        for name, value in vars(provider).items():
            if name.startswith("first_name") and "romanized" not in name:
                given |= _flat(value)
            elif name.startswith("last_name") and "romanized" not in name:
                family |= _flat(value)
        if len(given) > _LEAST_GIVEN and len(family) > _LEAST_FAMILY:
            found[locale] = sorted(given), sorted(family)
    return found


@cache
def cased_names() -> dict[str, Names]:
    """Return the names of scripts with capitals, by locale, and of our lists as ``own_de``."""
    found = {each: names for each, names in faker_names().items() if _is_cased(names[0][0])}
    for language in sorted(set(LANGUAGES) - {"world", "many"}):
        sections = read_sections(language)
        given, family = sections.get("given", ()), sections.get("family", ())
        if given and family and _is_cased(given[0]):
            found[f"own_{language}"] = list(_capitalised(given)), list(_capitalised(family))
    found["own_en"] = sorted(_capitalised(GIVEN_NAMES)), sorted(_capitalised(FAMILY_NAMES))
    return found


@cache
def words_of(language: str) -> list[str]:
    """Return the commonest words of a language, those of names too, most common first."""
    counts: dict[str, int] = SpellChecker(language=language).word_frequency.dictionary
    words = [word for word in counts if len(word) > 2 and word.isalpha()]
    return sorted(words, key=lambda word: (-counts[word], word))


def main(path: str) -> None:
    """Write the list of names, places and words of many languages."""
    given: set[str] = set()
    family: set[str] = set()
    for first, last in faker_names().values():
        given |= {word for each in first for word in each.lower().split()}
        family |= {each.lower() for each in last if " " not in each}
    names = given | family
    words = {
        word
        for language in _SPELLED
        for word in [each for each in words_of(language) if each not in names][:_MOST_WORDS]
    }
    sections = {"given": given, "family": family, "place": _places(), "word": words}
    text = "".join(
        f"[{name}]\n{' '.join(sorted(filter(_is_cased, entries)))}\n"
        for name, entries in sections.items()
    )
    Path(path).write_text(f"{_ORIGIN}\n{text}", "utf-8")


def _places() -> set[str]:
    """Return places whose name is one word of more than three letters."""
    found: set[str] = set()
    for _, provider in _providers(places_of):
        for name in _PLACES:
            found |= _flat(vars(provider).get(name))
    return {each.lower() for each in found if " " not in each and len(each) > 3}


def _providers(package: Any) -> Iterator[tuple[str, Any]]:
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda each: each.name):
        if module.ispkg:
            yield module.name, importlib.import_module(f"{package.__name__}.{module.name}").Provider


def _flat(found: object) -> set[str]:
    if not isinstance(found, dict | tuple | list | set):
        return set()
    words = {each if isinstance(each, str) else each[0] for each in found if each}
    return {word.strip() for word in words if word.strip() and "{" not in word}


def _is_cased(word: str) -> bool:
    return len(word) > 1 and word[0].isalpha() and word[0] < _BEYOND_CASED and "_" not in word


def _capitalised(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield "-".join(part[:1].upper() + part[1:] for part in name.split("-"))


if __name__ == "__main__":
    main(sys.argv[1])
