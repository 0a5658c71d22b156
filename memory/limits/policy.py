"""The policy of a guard: deadlines, concurrency, breaker, retries, tenancy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType

from ...telemetry.event.kinds import OperationClass
from ..errors import ConfigurationError

CLASSES: tuple[OperationClass, ...] = tuple(
    each for each in OperationClass if each is not OperationClass.MODEL
)
"""The classes of operations that a guard's calls can have."""

FAILS_OPEN = frozenset({OperationClass.RECALL, OperationClass.REMEMBER})
"""Classes whose caller gets a neutral value when the store fails. All others raise."""

LONGEST_S = 86_400.0
"""Longest deadline, in seconds. Locks cannot wait for ever, and nobody means to."""

DEADLINES_S: Mapping[OperationClass, float] = MappingProxyType(
    {
        OperationClass.RECALL: 2.0,
        OperationClass.REMEMBER: 10.0,
        OperationClass.FORGET: 30.0,
        OperationClass.RESUME: 10.0,
        OperationClass.CHECKPOINT: 10.0,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerPolicy:
    """
    The thresholds of a circuit breaker.

    Attributes:
        window_calls: Outcomes looked back on.
        window_s: And for how long, in seconds: older outcomes do not count.
        minimum_calls: Outcomes needed before a rate means anything.
        failure_rate: Share of failures that opens the breaker, in (0, 1].
        slow_rate: Share of slow calls that opens it, in (0, 1].
        slow_call_s: A call that takes longer is slow. None: half of its class's deadline.
        open_s: Seconds to wait before one probe is let through.
        probe_lease_s: Seconds after which a probe that never came back is given up.
    """

    window_calls: int = 32
    window_s: float = 30.0
    minimum_calls: int = 8
    failure_rate: float = 0.5
    slow_rate: float = 0.9
    slow_call_s: float | None = None
    open_s: float = 5.0
    probe_lease_s: float = 30.0

    def __post_init__(self) -> None:
        if not 1 <= self.minimum_calls <= self.window_calls:
            raise ConfigurationError(
                f"minimum_calls must be in [1, window_calls={self.window_calls}], "
                f"not {self.minimum_calls}"
            )
        for name in ("failure_rate", "slow_rate"):
            if not 0 < getattr(self, name) <= 1:
                raise ConfigurationError(f"{name} must be in (0, 1], not {getattr(self, name)}")
        for name in ("window_s", "open_s", "probe_lease_s", "slow_call_s"):
            value = getattr(self, name)
            if value is not None and not 0 < value < inf:
                raise ConfigurationError(f"{name} must be positive, not {value}")


PLACES = 64
"""Calls of one class that may be in a store at once."""

WAIT_S = 10.0
"""Seconds that calls of a class without a deadline wait for a place while none is given back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """
    The limits of a guard.

    Attributes:
        deadlines_s: Seconds a call of each class may take; 0 means no deadline.
        deadline_threads: Give a thread also to calls that their client could break off in time.
        concurrency: Calls of one class that may be in a store at once, hung ones included. Others
            wait, within their deadline, while the store answers.
        places: The same for single classes.
        waits_s: Seconds that calls of each class wait while the store gives no place back; then
            they are refused. 0: they do not wait. Not given: the deadline.
        breaker: When to stop asking.
        checkpoint_pauses_s: Seconds between the attempts to write a checkpoint, one fewer than
            there are attempts. Nothing else is retried: the caller knows whether it may be.
        enforce_tenancy: Refuse operations without the scope their store needs.
        raise_unexpected: Raise a store's failures in every class, but for known outages.
        tells_answers: Put what recalls found, and what went through runs of graphs, redacted,
            into their events.
    """

    deadlines_s: Mapping[OperationClass, float] = field(default_factory=lambda: DEADLINES_S)
    deadline_threads: bool = False
    concurrency: int = PLACES
    places: Mapping[OperationClass, int] = field(default_factory=dict[OperationClass, int])
    waits_s: Mapping[OperationClass, float] = field(default_factory=dict[OperationClass, float])
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    checkpoint_pauses_s: tuple[float, ...] = (0.05, 0.25)
    enforce_tenancy: bool = False
    raise_unexpected: bool = False
    tells_answers: bool = False

    def __post_init__(self) -> None:
        for op_class, seconds in self.deadlines_s.items():
            if not 0 <= seconds <= LONGEST_S:
                raise ConfigurationError(
                    f"the deadline of {op_class} must be 0 (none) or up to {LONGEST_S:g} seconds, "
                    f"not {seconds}"
                )
        for seconds in self.checkpoint_pauses_s:
            if not 0 <= seconds <= LONGEST_S:
                raise ConfigurationError(f"a checkpoint pause must not be {seconds} seconds")
        for places in (self.concurrency, *self.places.values()):
            if places < 1:
                raise ConfigurationError(f"concurrency must be at least 1, not {places}")
        for op_class, seconds in self.waits_s.items():
            if not 0 <= seconds <= LONGEST_S:
                raise ConfigurationError(
                    f"the wait of {op_class} must be 0 (none) or up to {LONGEST_S:g} seconds, "
                    f"not {seconds}"
                )

    def deadline_s(self, op_class: OperationClass) -> float:
        """Seconds a call of *op_class* may take; 0 means no deadline."""
        return self.deadlines_s.get(op_class, DEADLINES_S.get(op_class, 0.0))

    def places_for(self, op_class: OperationClass) -> int:
        """Calls of *op_class* that may be in a store at once."""
        return self.places.get(op_class, self.concurrency)

    def wait_s(self, op_class: OperationClass) -> float:
        """Seconds that calls of *op_class* wait while the store gives no place back."""
        return self.waits_s.get(op_class, self.deadline_s(op_class) or WAIT_S)

    def slow_call_s(self, op_class: OperationClass) -> float:
        """Seconds from which a call of *op_class* is slow; 0 means that none is."""
        return self.breaker.slow_call_s or self.deadline_s(op_class) / 2
