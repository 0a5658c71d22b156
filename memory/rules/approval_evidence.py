"""Guardrails and goldens: what a gate finds in a draft without a model, and where in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from ...telemetry.text import is_a

_DEPTH = 32  # as deep as content goes: what is below is cut there
_MOST_HITS = 16
_SHORT = 40
"""Letters that may all be capitals."""

_PLACEHOLDER = re.compile(
    r"\{\{.*?\}\}|\$\{\w+\}|\{[a-z]+(_[a-z]+)*\}|%[A-Z_]{3,}%|(?-i:<[a-z]+_[a-z_]+>)|"
    r"\[(?:insert|your|first|last|company|customer)[ _\w]*\]|lorem ipsum",
    re.IGNORECASE,
)
_SPAM = re.compile(
    r"\b(?:act now|buy now|click here|order now|limited[- ]time offer|risk[- ]free|100% free|"
    r"no obligation|earn (?:extra )?(?:money|cash)|you(?:'ve| have) (?:won|been selected)|"
    r"double your|once in a lifetime|this is not spam|congratulations,? winner)\b|!{3,}|\${3,}",
    re.IGNORECASE,
)

GUARDRAILS: Final = (_PLACEHOLDER.pattern, _SPAM.pattern, _SHORT)
"""What the guardrails go by: a gate with others is another version of it."""


class Hit(NamedTuple):
    """
    A place where a guardrail is violated.

    Attributes:
        code: The guardrail.
        start: First character of the text, from 0.
        end: The character behind the last.
    """

    code: str
    start: int
    end: int


def guardrail_hits(text: str, most_chars: int) -> list[Hit]:
    """Return where *text* violates guardrails, in the order of these; the first of very many."""
    return [*_hits(text, most_chars)]


def _hits(text: str, most_chars: int) -> Iterator[Hit]:
    yield from _found("placeholder", _PLACEHOLDER, text)
    letters = [each for each in text if each.isalpha()]
    if len(letters) > _SHORT and sum(map(str.isupper, letters)) > 0.7 * len(letters):
        yield Hit("spam", 0, len(text))
    yield from _found("spam", _SPAM, text)
    if not any(map(str.isalnum, text)):
        yield Hit("empty", 0, len(text))
    if len(text) > most_chars:
        yield Hit("oversized", most_chars, len(text))


def _found(code: str, pattern: re.Pattern[str], text: str) -> Iterator[Hit]:
    for each in islice(pattern.finditer(text), _MOST_HITS):
        yield Hit(code, *each.span())


def mismatches(goldens: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was found other than a golden, by name; of longer texts a judge says whether."""
    return {
        name: {"golden": of, "found": values.get(name)}
        for name, of in goldens.items()
        if not is_equal(values.get(name), of)
    }


def is_equal(found: Any, golden: Any) -> bool:
    """Return whether *found* is the golden value, and of its type: 1 is not True."""
    return type(found) is type(golden) and found == golden


def is_prose(value: Any) -> bool:
    """Return whether a golden value is a text that a judge compares."""
    return isinstance(value, str) and len(value.split()) > 1


def texts(value: Any, depth: int = _DEPTH) -> Iterator[str]:
    """Yield the texts in a value, down to those of pydantic models."""
    if isinstance(value, str):
        yield value
    elif depth and is_a(value, Mapping):
        for each in value.values():
            yield from texts(each, depth - 1)
    elif depth and is_a(value, list, tuple, set, frozenset):
        for each in value:
            yield from texts(each, depth - 1)
    elif depth and hasattr(value, "model_dump"):
        yield from texts(value.__dict__, depth - 1)
