"""
Rows of an adapter's table by their class, with OpenTelemetry's name for the operation.

``recall("search", neutral=…, summary=…)`` is a `Method` of class ``recall`` whose operation is
``search_memory``. Give *operation* where the method does something else to memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from ...telemetry.event.event import Deletes, OperationClass
from ..context import Scope
from .operation import Allows, Arguments, Keep, Method, PastRecall, Record, Summary
from .stored import Removed, Says, Sought

if TYPE_CHECKING:
    from ..privacy.engine.redaction import Redaction


class MethodOptions(TypedDict, total=False):
    """The optional fields of a `Method`, which has their meaning and their defaults."""

    neutral: Callable[[Arguments], Any] | None
    answer: Callable[[Any], bool] | None
    redact: Callable[[Arguments, Redaction], Arguments]
    scope: Callable[[Arguments], Scope]
    as_stored: Callable[[str], str] | None
    collection: Callable[[Arguments], str | None]
    summary: Callable[[Any, Arguments], Summary]
    content: Callable[[Arguments], Any]
    shields: bool
    ids: frozenset[str]
    keywords: frozenset[str]
    needs_owner: bool
    confine: Callable[[Arguments, str], Arguments] | None
    only: Callable[[Any, str], Any] | None
    unconfined: str
    hands_customer_on: bool
    spare: Callable[[Arguments, float], Arguments] | None
    repeat: Callable[[PastRecall], Arguments | None] | None
    sift: Callable[[Any, Arguments, Keep], Any] | None
    within: Callable[[Any, Arguments, Allows], Any] | None
    joins: Callable[[Arguments], Iterable[str]] | None
    asks: Callable[[Arguments], int] | None
    written: Callable[[Any, Arguments], Iterable[Record]] | None
    says: Says | None
    removed: Callable[[Arguments], Removed | None] | None
    sought: Callable[[Any, Arguments], Sought | None] | None
    whose: Callable[[Arguments], Iterable[tuple[str | None, Arguments]]] | None
    public: bool
    inline: bool


def recall(name: str, operation: str = "search_memory", **options: Unpack[MethodOptions]) -> Method:
    """Return a method that reads memories."""
    return Method(name=name, operation=operation, op_class=OperationClass.RECALL, **options)


def remember(
    name: str, operation: str = "upsert_memory", **options: Unpack[MethodOptions]
) -> Method:
    """Return a method that writes memories."""
    return Method(name=name, operation=operation, op_class=OperationClass.REMEMBER, **options)


def forget(
    name: str,
    operation: str = "delete_memory",
    *,
    deletes: Deletes,
    **options: Unpack[MethodOptions],
) -> Method:
    """Return a method that deletes memories, and how much of them."""
    return Method(
        name=name,
        operation=operation,
        op_class=OperationClass.FORGET,
        deletes=deletes,
        **options,
    )


def resume(
    name: str, operation: str = "load_checkpoint", **options: Unpack[MethodOptions]
) -> Method:
    """Return a method that reads the state an agent goes on from."""
    return Method(name=name, operation=operation, op_class=OperationClass.RESUME, **options)


def checkpoint(
    name: str, operation: str = "save_checkpoint", **options: Unpack[MethodOptions]
) -> Method:
    """Return a method that saves the state an agent goes on from."""
    return Method(name=name, operation=operation, op_class=OperationClass.CHECKPOINT, **options)


def fewer(limit: str, default: int) -> Callable[[Arguments, float], Arguments]:
    """Return the `Method.spare` of a method whose results are limited by the argument *limit*."""

    def spare(arguments: Arguments, share: float) -> Arguments:
        requested = arguments.get(limit)
        return {**arguments, limit: part_of(default if requested is None else requested, share)}

    return spare


def as_many(name: str) -> Callable[[Arguments], int]:
    """Return the `Method.asks` of a method whose argument *name* lists what it does."""

    def asks(arguments: Arguments) -> int:
        listed = arguments.get(name)
        return len(cast("Sequence[Any]", listed)) if isinstance(listed, (list, tuple)) else 1

    return asks


def part_of(limit: int, share: float) -> int:
    """Return *share* of a limit, 1 at least."""
    return max(1, ceil(limit * share))


def method_table(*methods: Method) -> dict[str, Method]:
    """Return *methods* by name."""
    return {each.name: each for each in methods}
