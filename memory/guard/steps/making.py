"""What the steps of one guard are made with, and the protocol of their makers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from ....telemetry.event.event import OperationClass
from ....telemetry.event.trace import Tracing
from ....telemetry.process.faults import Faults
from ...database import Database
from ...limits.class_limits import ClassLimits
from ...limits.policy import Policy
from ...limits.replayer import Replayer
from ...limits.workers import Workers
from ...scoped_redactor import ScopedRedactor
from ..call import Below
from ..deadline import Deadline
from ..step import Step
from ..writes import JournalledWrites
from .admit import Admit
from .classify import Classify
from .redact import Redact
from .report import Parts, Report
from .tenancy import Tenancy


class GuardParts(msgspec.Struct, kw_only=True, frozen=True, eq=False):
    """
    The parts of the guard of one client, as its steps are made.

    Attributes:
        store: The client's name in events and metrics.
        policy: What is allowed.
        database: What the client writes to. None: that is not known.
        limits: Breaker, bulkhead and deadline of each class of operations.
        deadline: Calls the store.
        report: Makes the event of a call.
        tenancy: Confines a call to its customer.
        redact: Replaces personal data.
        admit: Lets a call to the store, or not.
        classify: Tells a store's failure from a mistake of the caller.
        steps: The adapter's own.
        splits: Returns the operations in a call that holds several. None: none does.
        below: Returns the guards that the client does its own work in.
        writes: How the adapter says that a write is kept and made again. None: it does not.
        redactor: Begins the redaction of a call.
        tracing: Captures trace ids.
        workers: Threads for calls with a deadline.
        replayer: The thread that makes again what waits.
        faults: Where errors of our own are noted.
        clock: Monotonic seconds.
        wall_ns: Nanoseconds since 1970 UTC.
    """

    store: str
    policy: Policy
    database: Database | None
    limits: Mapping[OperationClass, ClassLimits]
    deadline: Deadline
    report: Report
    tenancy: Tenancy
    redact: Redact
    admit: Admit
    classify: Classify
    steps: Sequence[Step]
    splits: Parts | None
    below: Below
    writes: JournalledWrites | None
    redactor: ScopedRedactor
    tracing: Tracing
    workers: Workers
    replayer: Replayer
    faults: Faults
    clock: Callable[[], float]
    wall_ns: Callable[[], int]


class StepMaker(Protocol):
    """Makes the steps that a feature has in the guard of a client."""

    def __call__(self, parts: GuardParts, /) -> Sequence[Step]:
        """Return the steps, in their order. Empty: the feature has none there."""
        ...
