"""What events say, part by part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from mnemoscope.memory.api import Event, EventPart

PartT = TypeVar("PartT", bound=EventPart)


def parts_of(events: Iterable[Event], kind: type[PartT]) -> list[PartT]:
    """Return the parts of one kind, of those of *events* that have one."""
    return [part for each in events if (part := each.part(kind)) is not None]
