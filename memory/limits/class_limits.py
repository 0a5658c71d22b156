"""Limits of one class of operations on one store: breaker, bulkhead, deadline, retries."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from ...telemetry.event.event import OperationClass
from .breaker import Breaker
from .bulkhead import Bulkhead
from .policy import CLASSES, Policy


class ClassLimits(msgspec.Struct, frozen=True):
    """
    The limits that calls of one class share.

    Attributes:
        bulkhead: How many calls may be in the store at once; others wait.
        deadline_s: Seconds that a call may take; 0 means no deadline.
        slow_s: Seconds from which a call is slow; 0 means that none is.
        pauses_s: Seconds between the attempts, one fewer than there are.
        is_recall: Whether an answer with nothing in it is reported as empty.
    """

    breaker: Breaker
    bulkhead: Bulkhead
    deadline_s: float
    slow_s: float
    pauses_s: tuple[float, ...]
    is_recall: bool


def limits_by_class(
    policy: Policy, clock: Callable[[], float]
) -> Mapping[OperationClass, ClassLimits]:
    """Return new limits for each class of operations, as *policy* sets them."""
    return {each: _limits_of(each, policy, clock) for each in CLASSES}


def _limits_of(op_class: OperationClass, policy: Policy, clock: Callable[[], float]) -> ClassLimits:
    return ClassLimits(
        breaker=Breaker(policy.breaker, clock),
        bulkhead=Bulkhead(policy.places_for(op_class), policy.wait_s(op_class), clock),
        deadline_s=policy.deadline_s(op_class),
        slow_s=policy.slow_call_s(op_class),
        pauses_s=policy.checkpoint_pauses_s if op_class is OperationClass.CHECKPOINT else (),
        is_recall=op_class is OperationClass.RECALL,
    )
