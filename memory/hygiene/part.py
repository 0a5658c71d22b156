"""The part of an event that says which texts an operation found or wrote, as keyed hashes."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final

from ...telemetry.event.part import EventPart
from ...telemetry.text import is_a

LEAST_CHARACTERS: Final = 12
"""Characters of the shortest text that counts: tags and names are in many memories."""

_DEPTH: Final = 8


class MemoryTexts(EventPart, tag="hygiene", frozen=True):
    """
    The texts of an operation's memories, one group for each, in the order of its memory ids.

    Hashes are in the erasable detail of the audit trail alone; other sinks have the counts.

    Attributes:
        read: Of the memories that a recall found.
        wrote: Of those that a write wrote.
        echoes: Memories written with a text that the same run had recalled.
        repeats: Memories written with a text that the same customer's memories had already.
    """

    read: tuple[tuple[str, ...], ...] = ()
    wrote: tuple[tuple[str, ...], ...] = ()
    echoes: int = 0
    repeats: int = 0

    def fields(self) -> dict[str, int]:
        """Return how many memories repeat something, where any does."""
        found = {"echoes": self.echoes, "repeats": self.repeats}
        return {name: count for name, count in found.items() if count}

    def measurements(self) -> dict[str, float]:
        """Return memories written, and those that repeat something."""
        return {"written": len(self.wrote), **self.fields()} if self.wrote else {}

    def detail(self) -> Mapping[str, Any]:
        """Return the hashes."""
        return {"read": self.read, "wrote": self.wrote}


def plain(text: str) -> str:
    """Return *text* without what two copies of it may differ in: case, spaces, Unicode's forms."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def texts_in(value: Any, depth: int = _DEPTH) -> Iterator[str]:
    """Yield the texts in a value of JSON types, plain, but for the shortest."""
    if is_a(value, str):
        if len(text := plain(value)) >= LEAST_CHARACTERS:
            yield text
    elif depth and is_a(value, Mapping):
        for each in value.values():
            yield from texts_in(each, depth - 1)
    elif depth and is_a(value, list, tuple):
        for each in value:
            yield from texts_in(each, depth - 1)


def hashing(key: bytes) -> Callable[[str], str]:
    """Return the function that makes a keyed hash of a text: 16 hex digits."""
    keyed = blake2b(key=key, digest_size=8)

    def hashed(text: str) -> str:
        digest = keyed.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    return hashed
