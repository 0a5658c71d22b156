"""
Making frozen objects for less.

A frozen dataclass sets each of its fields through ``object.__setattr__``, since its own
``__setattr__`` refuses. For an event of thirty-odd fields, that is a third of what a guarded call
costs its caller.
"""

from __future__ import annotations

from dataclasses import field, fields, make_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)
else:
    T = TypeVar("T")


def thawed(frozen: type[T]) -> type[T]:
    """
    Return what makes instances of *frozen* as its constructor does, at the cost of plain slots.

    While the fields are set, the object is one of a class with the same slots that is not frozen;
    the last step of its constructor gives it its real class, which is a change of one pointer.

    Args:
        frozen: A dataclass with ``slots=True`` and no base class, ``__init__`` or
            ``__post_init__`` of its own.
    """

    def freeze(draft: Any) -> None:
        draft.__class__ = frozen

    made = make_dataclass(
        f"Thawed{frozen.__name__}",
        [(each.name, Any, _like(each)) for each in fields(frozen)],
        slots=True,
        namespace={"__post_init__": freeze},
    )
    return cast("type[T]", made)


def _like(each: Any) -> Any:
    return field(
        default=each.default, default_factory=each.default_factory, kw_only=bool(each.kw_only)
    )
