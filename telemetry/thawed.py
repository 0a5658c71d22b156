"""
Making frozen objects for less.

A frozen dataclass sets each of its fields through ``object.__setattr__``, since its own
``__setattr__`` refuses; and a constructor that is called with thirty keywords looks each of them up
among all the others. For an event, that is a tenth of what a guarded call costs its caller.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def draft_of(frozen: type[DataclassInstance]) -> type[Any]:
    """
    Return a class with the slots of *frozen*, all of them empty, that anybody may fill.

    Whoever has filled every one gives the draft its real class, ``draft.__class__ = frozen``, which
    is a change of one pointer. No default is set: a slot that is forgotten has no value at all.

    Args:
        frozen: A dataclass with ``slots=True`` and no base class.
    """
    slots = tuple(each.name for each in fields(frozen))
    return type(f"Draft{frozen.__name__}", (), {"__slots__": slots})
