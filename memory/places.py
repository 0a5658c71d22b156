"""What a guard has for each class of operations, found at one go in every call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..telemetry.event import OperationClass
from .breaker import Breaker
from .bulkhead import Bulkhead
from .policy import Policy


@dataclass(frozen=True, slots=True)
class Place:
    """
    What calls of one class share.

    Attributes:
        breaker: Whether to ask the store.
        bulkhead: How many may.
        deadline_s: Seconds that a call may take; 0 means no deadline.
        slow_s: Seconds from which a call is slow; 0 means that none is.
        pauses_s: Seconds between the attempts, one fewer than there are.
        recalls: Whether an answer with nothing in it is worth telling.
    """

    breaker: Breaker
    bulkhead: Bulkhead
    deadline_s: float
    slow_s: float
    pauses_s: tuple[float, ...]
    recalls: bool


def place_of(op_class: OperationClass, policy: Policy, clock: Callable[[], float]) -> Place:
    """Return what *policy* allows calls of *op_class*."""
    return Place(
        breaker=Breaker(policy.breaker, clock),
        bulkhead=Bulkhead(policy.concurrency),
        deadline_s=policy.deadline_s(op_class),
        slow_s=policy.slow_call_s(op_class),
        pauses_s=policy.checkpoint_pauses_s if op_class is OperationClass.CHECKPOINT else (),
        recalls=op_class is OperationClass.RECALL,
    )
