"""Pieces of what the adapters' writes and deletions touch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from ...memory.api import Arguments, Touches
from ...memory.guard.touches import UNTOLD


def never_raising(
    tell: Callable[[str, Arguments], Touches],
) -> Callable[[str, Arguments], Touches]:
    """Return *tell* such that what it cannot tell, whatever the arguments are, is untold."""

    def touches(method: str, arguments: Arguments) -> Touches:
        try:
            return tell(method, arguments)
        except Exception:  # noqa: BLE001 - arguments that the client refuses
            return UNTOLD

    return touches


def record_names(ids: Iterable[Any]) -> frozenset[str] | None:
    """Return the names of the records with these *ids*. None: an id is of no known type."""
    names = [_name(each) for each in ids]
    return None if None in names else frozenset(each for each in names if each is not None)


def _name(record_id: Any) -> str | None:
    if isinstance(record_id, bool) or not isinstance(record_id, (str, int, UUID)):
        return None
    try:
        # One id may be written with or without dashes, in capitals or not.
        return str(UUID(record_id)) if isinstance(record_id, str) else str(record_id)
    except ValueError:
        return str(record_id)
