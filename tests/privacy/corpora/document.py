"""A text, and where in it personal data stands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Half(StrEnum):
    """
    One of the two halves of a set: no template and no value of one is in the other.

    Attributes:
        DEVELOPMENT: To look at, and to improve rules by.
        EVALUATION: To report figures of. Nobody who works on rules looks at it.
    """

    DEVELOPMENT = "development"
    EVALUATION = "evaluation"


@dataclass(frozen=True, slots=True)
class Span:
    """
    Personal data in a text.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last.
        label: The entity, by the names that redaction has for them: ``PERSON``, ``PHONE_NUMBER``…
    """

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class Document:
    """
    A text of a set.

    Attributes:
        text: The text.
        spans: The personal data in it, in order, without overlaps. Empty: it holds none.
        language: ISO 639-1 code; empty for what is in none, as logs are.
        genre: What it is: ``chat``, ``e-mail``, ``form``, ``log``…
        template: Name of the template that it was made of, unique within its set.
    """

    text: str
    spans: tuple[Span, ...]
    language: str
    genre: str
    template: str
