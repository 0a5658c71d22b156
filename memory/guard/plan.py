"""Planning of calls: the faces of a guard's steps as flat tuples, once for each method."""

from __future__ import annotations

from collections.abc import Sequence

from ..limits.class_limits import ClassLimits
from .call import Below, Plan
from .operation import Method
from .step import Step


def plan_for(
    method: Method,
    steps: Sequence[Step],
    limits: ClassLimits,
    *,
    home: object,
    guard: object,
    below: Below,
) -> Plan:
    """
    Return what *steps* do in calls of *method*: before the store in order, after it reversed.

    *guard* is None for a call that is made again, outside of it.
    """
    faces = [step.faces(method) for step in steps]
    behind = faces[::-1]
    return Plan(
        limits=limits,
        before=tuple(each.before for each in faces if each.before),
        after=tuple(each.after for each in behind if each.after),
        abefore=tuple(each.abefore or each.before for each in faces if each.before),
        aafter=tuple(each.aafter or each.after for each in behind if each.after),
        home=home,
        guard=guard,
        below=below,
    )
