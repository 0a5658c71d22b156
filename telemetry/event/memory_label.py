"""The part of an event that says how far what was written is to be trusted."""

from __future__ import annotations

import msgspec


class MemoryLabel(msgspec.Struct, frozen=True, array_like=True):
    """
    The origin of the memories that an operation wrote.

    Attributes:
        origin: The least trusted source of all that the run had read: a code. Closed.
        trust: The same as a number: the higher, the more.
        tags: Keyed hashes of place, id and content, one for each part of each memory.
    """

    origin: str
    trust: int
    tags: tuple[str, ...]
