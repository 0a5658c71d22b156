"""The file of a language and half: its lists of values, and its templates."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

from ..document import Half

_PATTERN_KEYS = frozenset(
    {"full", "official", "formal", "address", "phone", "plate", "passport", "account", "date"}
)
"""Keys whose values hold commas: they are parted by semicolons."""

GENRES = ("chat", "e-mail", "form", "note", "tool output", "json", "ticket", "transcript")


@dataclass(frozen=True, slots=True)
class Template:
    """
    A text with slots.

    Attributes:
        name: Unique among the templates of all languages and halves.
        genre: One of ``GENRES``.
        text: The text, its slots in braces.
    """

    name: str
    genre: str
    text: str


@dataclass(frozen=True, slots=True)
class LanguageData:
    """
    What a language's texts of one half are made of.

    Attributes:
        language: ISO 639-1 code.
        half: The half.
        values: Lists of names, streets, patterns of numbers… by their key in the file.
        templates: The templates, in the file's order.
    """

    language: str
    half: Half
    values: Mapping[str, tuple[str, ...]]
    templates: tuple[Template, ...]


@functools.cache
def language_data(language: str, half: Half) -> LanguageData:
    """The parsed file of a language and half."""
    name = f"{language}.{half.value}.txt"
    text = files(__package__).joinpath("data", name).read_text(encoding="utf-8")
    return parse(text, language=language, half=half)


def parse(text: str, *, language: str, half: Half) -> LanguageData:
    """Read the form that the files have: ``key: values``, then ``== genre: name`` and a text."""
    head, *bodies = f"\n{text}".split("\n== ")
    return LanguageData(
        language=language,
        half=half,
        values=dict(_values(head)),
        templates=tuple(_template(body, f"{language}-{half.value}") for body in bodies),
    )


def _values(head: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for line in head.replace("\n  ", " ").splitlines():
        if line and not line.startswith("#"):
            key, _, listed = line.partition(":")
            separator = ";" if key in _PATTERN_KEYS else ","
            yield key, tuple(value.strip() for value in listed.split(separator) if value.strip())


def _template(body: str, prefix: str) -> Template:
    heading, _, text = body.partition("\n")
    genre, _, name = heading.partition(": ")
    return Template(name=f"{prefix}-{name}", genre=genre, text=text.strip("\n"))
