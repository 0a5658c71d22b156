"""What the guards of one scope share: redactor, drain, keys, clocks. Built once, by assembly."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..telemetry.drain import Drain
from ..telemetry.faults import Faults
from ..telemetry.subject import SubjectKeys
from ..telemetry.trace import Tracing
from .budgets import Budgets
from .context import Scope
from .deadline import Workers
from .holdings import Holdings
from .journal.replayer import Replayer
from .policy import Policy

if TYPE_CHECKING:
    from .guard import Guard
    from .journal.journal import Journal
    from .ledger import Ledger
    from .redaction.redactor import Redactor
    from .vault.vault import Pocket, Vault


def no_parent() -> str | None:
    """Return what there is above a call where nobody asks LangSmith."""
    return None


@dataclass(slots=True, kw_only=True, weakref_slot=True)
class Runtime:
    """
    The services behind every guard of a scope.

    Attributes:
        redactor: Begins the redaction of each call.
        drain: Takes the events.
        keys: Turns customers into subjects.
        policy: What is allowed.
        tracing: Captures trace ids.
        parent_run: Returns LangSmith's dotted order of the current run, if that sink is on.
        workers: Threads for calls with a deadline.
        faults: Our own errors.
        journal: Keeps writes that a store did not take, if there is one.
        vault: Keeps what pseudonyms stand for, if there is one.
        ledger: Holds calls to the audit trail's word, where they are to wait for it.
        replayer: Makes them again, and those that a guard itself keeps.
        guards: The guards that are alive, for live figures and health.
        holdings: What their clients' stores hold about people.
        budgets: What may be spent, and what was.
        clock: Monotonic seconds.
        wall_ns: Nanoseconds since 1970 UTC.
    """

    redactor: Redactor
    drain: Drain
    keys: SubjectKeys
    policy: Policy = field(default_factory=Policy)
    tracing: Tracing = field(default_factory=Tracing)
    parent_run: Callable[[], str | None] = no_parent
    workers: Workers = field(default_factory=Workers)
    faults: Faults = field(default_factory=Faults)
    journal: Journal | None = None
    vault: Vault | None = None
    ledger: Ledger | None = None
    replayer: Replayer = field(init=False)
    guards: weakref.WeakSet[Guard] = field(default_factory=weakref.WeakSet["Guard"])
    holdings: Holdings = field(default_factory=Holdings)
    budgets: Budgets = field(default_factory=Budgets)
    clock: Callable[[], float] = time.perf_counter
    wall_ns: Callable[[], int] = time.time_ns

    def __post_init__(self) -> None:
        self.replayer = Replayer(self.faults)

    def pocket(self, scope: Scope) -> Pocket | None:
        """Return who keeps what pseudonyms stand for in a call of *scope*; None: nobody."""
        if self.vault is None or scope.customer is None:
            return None
        return self.vault.pocket(scope.customer, scope.tenant)

    def flush(self, timeout_s: float) -> bool:
        """Wait until vault and sinks have everything so far. False after *timeout_s*, or a loss."""
        deadline = time.monotonic() + timeout_s
        written = self.vault is None or self.vault.flush(timeout_s)
        return self.drain.flush(max(0.0, deadline - time.monotonic())) and written

    def close(self, timeout_s: float) -> None:
        """Deliver what is queued and let go, in *timeout_s* seconds at most."""
        deadline = time.monotonic() + timeout_s
        self.replayer.close(timeout_s / 4)
        if self.journal is not None:
            self.journal.close(timeout_s / 4)
        if self.vault is not None:
            self.vault.close(timeout_s / 4)
        self.drain.close(max(0.0, deadline - time.monotonic()))
