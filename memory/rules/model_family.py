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


def shared_family(composer: str, judges: Iterable[str]) -> str | None:
    """Return the family of *composer* and one of *judges*. Empty: of none. None: it is unknown."""
    own, others = family_of(composer), {family_of(each) for each in judges} or {None}
    if own is not None and own in others:
        return own
    return None if own is None or None in others else ""


def sentence(family: str | None) -> str:
    """Return a line about what `shared_family` returned."""
    if family is None:
        return (
            "whether composer and judge are of one family of models is unknown: name them by "
            "composer= and judged_by="
        )
    if not family:
        return "no judge is a model of the composer's family"
    return (
        f"composer and judge are both models of {family}: a model favours what is like its own, so "
        "let one of another family judge"
    )
