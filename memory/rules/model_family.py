"""Families of models, by the names that vendors and hosts give them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_FAMILIES: Final = {
    "openai": r"gpt|chatgpt|o\d",
    "anthropic": r"claude",
    "google": r"gemini|gemma",
    "mistral": r"mi[sx]tral|codestral|devstral|magistral|ministral|pixtral",
    "meta": r"(?:code)?llama",
    "qwen": r"qwen|qwq",
    "deepseek": r"deepseek",
    "cohere": r"command|aya",
    "xai": r"grok",
    "amazon": r"nova|titan",
    "microsoft": r"phi",
    "moonshot": r"kimi",
    "zhipu": r"glm",
}
_PATTERNS = {name: re.compile(rf"(?:{of})(?![a-z])") for name, of in _FAMILIES.items()}
_PARTS = re.compile(r"[/:.]")


def family_of(model: str) -> str | None:
    """
    Return who trained *model*, by its name. None: the name does not tell.

    A prefix of a host or a region is no matter (``us.anthropic.claude-…``, ``openrouter/…``), nor
    is what behind a colon says whose tuning it is (``ft:gpt-4o:acme``).
    """
    for part in _PARTS.split(model.lower()):
        for family, pattern in _PATTERNS.items():
            if pattern.match(part):
                return family
    return None


def shared_families(composers: Iterable[str], judges: Iterable[str]) -> tuple[list[str], bool]:
    """Return the families that are on both sides, and whether the family of each is known."""
    sides = [[family_of(each) for each in side] for side in (composers, judges)]
    known = all(side and None not in side for side in sides)
    both = set(sides[0]) & set(sides[1]) - {None}
    return sorted(each for each in both if each), known
