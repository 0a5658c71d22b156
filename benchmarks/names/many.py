"""Write names, places and words of many languages: ``python -m benchmarks.names.many FILE``."""

from __future__ import annotations

import sys
from pathlib import Path

import faker.providers.address as places_of

from benchmarks.names.pools import faker_names, flat, is_cased, providers, words_of

_PLACES = ("cities", "city_names", "countries", "states", "provinces", "regions", "districts")
_SPELLED = ("de", "es", "fr", "it", "nl", "pt")
_MOST_WORDS = 8_000
_ORIGIN = (
    "# Names, places and common words of many languages. Origin: the lists of the PyPI packages"
    " faker 40 (MIT) and pyspellchecker 0.9 (MIT)."
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
    sections = {"given": given, "family": family, "place": _places(), "word": words}
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
    return {each.lower() for each in found if " " not in each and len(each) > 3}


if __name__ == "__main__":
    main(sys.argv[1])
