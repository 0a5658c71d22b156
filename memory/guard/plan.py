"""Planning of calls: the faces of a guard's steps as flat tuples, once for each method."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ..limits.class_limits import ClassLimits
from .call import Call, Plan, Waits
from .operation import Method
from .step import Face, Step


def plan_for(method: Method, steps: Sequence[Step], limits: ClassLimits, *, home: object) -> Plan:
    """Return what *steps* do in calls of *method*: before the store in order, after it reversed."""
    faces = [step.faces(method) for step in steps]
    behind = faces[::-1]
    return Plan(
        limits=limits,
        before=tuple(each.before for each in faces if each.before),
        after=tuple(each.after for each in behind if each.after),
        abefore=tuple(_either(each.abefore, each.before) for each in faces if each.before),
        aafter=tuple(_either(each.aafter, each.after) for each in behind if each.after),
        home=home,
    )


def plan_without_steps(limits: ClassLimits, *, home: object) -> Plan:
    """Return the plan of a call that is made outside its guard."""
    return Plan(limits, (), (), (), (), home)


def _either(
    waiting: Callable[[Call], Awaitable[None]] | None, plain: Face
) -> tuple[Callable[[Call], Any], Waits]:
    return (plain, False) if waiting is None else (waiting, True)
