"""The groups of texts that say the same, by rapidfuzz: an extra, imported where it is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Final

from ..errors import ConfigurationError
from .part import plain

SAME: Final = 76.0
"""Likeness, of 100, from which two texts say the same, whatever the order of their words."""

SAME_SHORT: Final = 92.0
"""The same of texts of fewer than `_LONG` characters, in which one word may be all there is."""

_LONG: Final = 48
_AT_ONCE: Final = 256
_FIRM: Final = re.compile(
    r"\d+|\b(?:not|no|never|cannot|without)\b|n['\u2019]t\b|(?<!['\u2019])\b[b-hj-z]\b"
)
"""Numbers, denials and letters as names: two texts that differ in one do not say the same."""


def alike(texts: Sequence[str]) -> list[list[int]]:
    """
    Return the groups of *texts*, by their places, in which each says the same as another one.

    Raises:
        ConfigurationError: rapidfuzz is not installed.
    """
    said = [plain(text) for text in texts]
    group = list(range(len(said)))

    def first(place: int) -> int:
        while group[place] != place:
            place = group[place]
        return place

    for one, other in _pairs(said):
        left, right = sorted((first(one), first(other)))
        group[right] = left
    found: dict[int, list[int]] = {}
    for place in range(len(said)):
        found.setdefault(first(place), []).append(place)
    return [places for places in found.values() if len(places) > 1]


def is_like(text: str, others: Sequence[str]) -> int | None:
    """Return the place of the first of *others* that says what *text* does. None: none does."""
    said = plain(text)
    for place, other in enumerate(others):
        if _say_the_same(said, plain(other), _rapidfuzz("fuzz").token_sort_ratio):
            return place
    return None


def _say_the_same(one: str, other: str, likeness: Any) -> bool:
    return _is_same(one, other, likeness(one, other, score_cutoff=SAME))


def _is_same(one: str, other: str, likeness: float) -> bool:
    least = SAME if min(len(one), len(other)) >= _LONG else SAME_SHORT
    return likeness >= least and _firm(one) == _firm(other)


def _firm(text: str) -> list[str]:
    found = _FIRM.findall(text)
    return sorted(each if each.isdigit() or len(each) == 1 else "not" for each in found)


def _pairs(said: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of each two texts that say the same."""
    measures, process = _rapidfuzz("fuzz"), _rapidfuzz("process")
    for start in range(0, len(said), _AT_ONCE):
        rows = process.cdist(
            said[start : start + _AT_ONCE],
            said[start:],
            scorer=measures.token_sort_ratio,
            score_cutoff=SAME,
        )
        for one, other in zip(*rows.nonzero(), strict=True):
            left, right = start + int(one), start + int(other)
            if left < right and _is_same(said[left], said[right], float(rows[one, other])):
                yield left, right


def _rapidfuzz(module: str) -> Any:
    try:
        return import_module(f"rapidfuzz.{module}")
    except ImportError:
        raise ConfigurationError(
            "near duplicates need rapidfuzz: pip install 'mnemoscope[hygiene]', or pass --no-near"
        ) from None
