"""The places of texts in the arguments of the call that is being redacted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from typing import Any, TypeAlias, cast

from ..guard.call import Call
from ..privacy.engine.numbers import NumberText
from ..privacy.engine.operators import Operator
from ..privacy.engine.value_redaction import DEPTH_LIMIT
from .part import RedactionPlaces

Path: TypeAlias = tuple[Any, ...]
"""Names, keys and indices, from the argument's name on."""

MOST_PATHS = 32
"""Paths in one event; what is found elsewhere is counted under ``*``."""

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,31}")
_INDEX = re.compile(r"\[\d+\]")


class TextPlaces:
    """
    Where each text of a call's arguments stands, and what was found there.

    Args:
        call: The call.
        outer: Of the call that it is made from inside of. None: it is made by the application.

    Attributes:
        outer: As given.
    """

    def __init__(self, call: Call, outer: TextPlaces | None) -> None:
        self.outer = outer
        self._call = call
        self._paths: dict[type, dict[int, list[Path]]] = {}
        self._replaced: dict[str, dict[str, int]] = {}
        self._kept: set[tuple[str, str]] = set()
        self._kept_finds = 0

    def __repr__(self) -> str:
        """Return a constant: what was kept is a person's."""
        return "TextPlaces(...)"

    def paths_of(self, text: str, is_plain: Callable[[str], bool]) -> list[str]:
        """
        Return the places of a text object, or of a number by its text; none after redaction.

        Args:
            text: The object itself: an equal one that was made since is in no place.
            is_plain: Returns whether a key may be shown.
        """
        if self._call.redacted:
            return []
        given: object = text.number if isinstance(text, NumberText) else text
        kind = str if given is text else given.__class__
        paths = self._paths.get(kind)
        if paths is None:
            paths = self._paths[kind] = {}
            for path, each in _items_of(kind, self._call.arguments, (), set()):
                paths.setdefault(id(each), []).append(path)
        return [_written(path, is_plain) for path in paths.get(id(given), ())]

    def has_kept(self, entity: str, found: str) -> bool:
        """Return whether a call outside of this one kept the same data."""
        outer = self.outer
        return outer is not None and (
            (entity, found) in outer._kept or outer.has_kept(entity, found)  # noqa: SLF001
        )

    def count(self, path: str, entity: str, found: str, operator: Operator) -> None:
        """Count what became of a find."""
        if operator is Operator.KEEP:
            self._kept.add((entity, found))
            self._kept_finds += 1
            return
        place = _INDEX.sub("[]", path)
        if place not in self._replaced and len(self._replaced) >= MOST_PATHS:
            place = "*"
        counts = self._replaced.setdefault(place, {})
        counts[entity] = counts.get(entity, 0) + 1

    def part(self) -> RedactionPlaces | None:
        """Return what was counted, for the event. None: nothing was found."""
        if not (self._replaced or self._kept_finds):
            return None
        return RedactionPlaces(replaced=self._replaced, kept=self._kept_finds)


current_places: ContextVar[TextPlaces | None] = ContextVar("mnemoscope_places", default=None)
"""The places of the innermost call that a callback is asked about."""


def _items_of(kind: type, value: Any, path: Path, open_: set[int]) -> Iterator[tuple[Path, object]]:
    """Yield the texts in *value*, or its numbers of a *kind*, and where they stand."""
    if isinstance(value, kind):
        yield path, value
        return
    if id(value) in open_ or len(open_) >= DEPTH_LIMIT:
        return
    open_.add(id(value))
    for part, item in _items(value):
        yield from _items_of(kind, item, (*path, part), open_)
    open_.discard(id(value))


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, (list, tuple, AbstractSet)):
        yield from enumerate(cast("Iterable[Any]", value))
    elif isinstance(held := getattr(value, "__dict__", None), dict):
        yield from held.items()


def _written(path: Path, is_plain: Callable[[str], bool]) -> str:
    written = ""
    for part in path:
        if isinstance(part, int):
            written += f"[{part}]"
        else:
            is_shown = isinstance(part, str) and _PLAIN_KEY.fullmatch(part) and is_plain(part)
            written += f".{part if is_shown else '*'}"
    return written.removeprefix(".")
