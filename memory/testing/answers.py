"""Answers that are not what a store holds: with fewer, more or other records."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable
from datetime import date, time, timedelta
from enum import Enum
from string import ascii_lowercase
from typing import Any, Final, TypeAlias, cast

from ..guard.operation import Arguments, Method

Change: TypeAlias = Callable[[list[Any]], list[Any]]
"""Returns records as a faulty store gives them; the same list where there is nothing to change."""

_WHOLE = (bytes, int, float, date, time, timedelta, Enum, type)
_WORD = re.compile(r"[^\W\d_]{2,}")
_DEEPER: Final = object()


def with_records(answer: Any, method: Method | None, change: Change) -> Any:
    """
    Return *answer* with its outermost lists changed: its records, or the lists in its one record.

    The answer itself stays as it is. Of an answer to a batch each part is changed.
    """
    is_batch = method is not None and method.asks is not None

    def visit(value: Any) -> Any:
        if value.__class__ is not list or (is_batch and value is answer):
            return _DEEPER
        # A list of lists is a batch, too: changed as a whole, answers would be those of others.
        return _DEEPER if any(isinstance(each, list) for each in value) else change(value)

    return rebuilt(answer, visit)


def without_records(answer: Any, method: Method | None, given: Arguments) -> Any:
    """Return what a store answers where it has nothing: the neutral value of a recall."""
    if method is not None and method.neutral is not None:
        return method.neutral(given)
    return _class_of(answer)() if isinstance(answer, (list, dict)) else None


def as_nonsense(answer: Any, method: Method | None, given: Arguments, draw: random.Random) -> Any:
    """Return *answer* with random letters in the place of words that are no ids, nor *given*."""
    ids = () if method is None else method.summary(answer, given).memory_ids
    # What the caller knows already has to fit, such as the thread of a checkpoint.
    kept = repr((given, ids))

    def letters(word: re.Match[str]) -> str:
        return "".join(draw.choices(ascii_lowercase, k=len(word[0])))

    def visit(value: Any) -> Any:
        if not isinstance(value, str) or isinstance(value, Enum):
            return _DEEPER
        return value if value in kept else _WORD.sub(letters, value)

    return rebuilt(answer, visit)


def renamed(value: Any, old: str, new: str) -> Any:
    """Return a copy of *value* with *new* in the place of *old*, at any depth, in keys too."""

    def visit(part: Any) -> Any:
        if isinstance(part, dict):
            pairs = cast("Any", part)
            return {rebuilt(key, visit): rebuilt(each, visit) for key, each in pairs.items()}
        return part.replace(old, new) if isinstance(part, str) else _DEEPER

    return rebuilt(value, visit)


def twice(records: list[Any]) -> list[Any]:
    """Return each of *records* two times."""
    return [again for each in records for again in (each, each)]


def shuffled(records: list[Any], draw: random.Random) -> list[Any]:
    """Return *records* in another order, where there is one."""
    drawn = draw.sample(records, len(records))
    return drawn if drawn != records else records[::-1]


def _class_of(value: Any) -> Any:
    return value.__class__


def rebuilt(value: Any, visit: Callable[[Any], Any]) -> Any:
    """Return a copy of *value* with what *visit* returns for its parts; itself, if none differ."""
    found = visit(value)
    if found is not _DEEPER or isinstance(value, (str, *_WHOLE)) or callable(value):
        return value if found is _DEEPER else found
    kind = _class_of(value)
    if isinstance(value, dict):
        pairs = cast("Any", value)
        changed = {key: rebuilt(each, visit) for key, each in pairs.items()}
        return pairs if all(changed[key] is each for key, each in pairs.items()) else changed
    if isinstance(value, (list, tuple, set, frozenset)):
        items = cast("Any", value)
        new = [rebuilt(each, visit) for each in items]
        if all(one is other for one, other in zip(new, items, strict=True)):
            return items
        return kind(*new) if hasattr(kind, "_fields") else kind(new)
    # Of each class above it, too: a found item has the slots of an item and one of its own.
    slots = (name for each in kind.__mro__ for name in getattr(each, "__slots__", ()))
    names = [*getattr(value, "__dict__", ()), *slots]
    parts = {name: getattr(value, name) for name in names if hasattr(value, name)}
    changed = {name: rebuilt(part, visit) for name, part in parts.items()}
    if all(changed[name] is part for name, part in parts.items()):
        return value
    # A store in memory hands out what it holds: changed in place, it would be changed for good.
    again = copy.copy(value)
    for name, part in changed.items():
        # Frozen models refuse what a wire does to them.
        object.__setattr__(again, name, part)
    return again
