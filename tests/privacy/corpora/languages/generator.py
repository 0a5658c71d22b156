"""Texts of a half, made anew at each call and always the same."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from importlib.resources import files

from ..document import Document, Half, Span
from .language_data import LanguageData, Template, language_data
from .slots import Piece, Rendering

LANGUAGES = tuple(
    sorted(
        file.name.partition(".")[0]
        for file in files(__package__).joinpath("data").iterdir()
        if file.name.endswith(".development.txt")
    )
)
"""The languages that there are texts in."""


def documents(
    half: Half,
    *,
    languages: Iterable[str] | None = None,
    per_template: int = 3,
    seed: int = 0,
) -> Iterator[Document]:
    """
    The labelled texts of a half.

    Args:
        half: Which half's templates and values they are made of.
        languages: ISO 639-1 codes; all of them by default.
        per_template: How many texts are made of each template.
        seed: The same one makes the same texts.
    """
    for language in LANGUAGES if languages is None else languages:
        yield from documents_of(language_data(language, half), per_template, seed)


def documents_of(data: LanguageData, per_template: int, seed: int) -> Iterator[Document]:
    """The labelled texts of a language and half."""
    for template in data.templates:
        for number in range(per_template):
            rng = random.Random(f"{seed}/{template.name}/{number}")  # noqa: S311 - not secret
            pieces = Rendering(data, rng).pieces(template.text)
            yield _document(template, data.language, pieces)


def _document(template: Template, language: str, pieces: Iterable[Piece]) -> Document:
    text, spans = "", []
    for piece in pieces:
        if piece.label:
            spans.append(Span(len(text), len(text) + len(piece.text), piece.label))
        text += piece.text
    return Document(text, tuple(spans), language, template.genre, template.name)
