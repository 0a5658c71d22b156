"""What model calls are counted with: prices, budgets, and the events that both lead to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ..telemetry.delivery.drain import Drain
from ..telemetry.event.budget_event import BudgetEvent
from ..telemetry.event.event import VERDICT, Event, OperationClass, Redacted, Status
from ..telemetry.event.kinds import Level
from ..telemetry.event.parent_run import ParentRun
from ..telemetry.event.part import EventPart
from ..telemetry.event.trace import Tracing
from ..telemetry.event.trace_ref import TraceRef
from ..telemetry.event.usage import Usage
from ..telemetry.pricing.prices import Prices
from ..telemetry.process.faults import Faults
from ..telemetry.process.fork import reset_after_fork
from .context import Scope
from .errors import BudgetExceededError
from .guard.labels import Labels, with_names

if TYPE_CHECKING:
    from ..telemetry.event.verdict_event import VerdictEvent
    from .budgets.budgets import Budgets
    from .rules.held_writes import Decisions
    from .rules.rulebook import Rulebook
    from .run_observers import RunObserver

STORE = "budget"
"""What stands for a store in events of budgets."""

RULE = "rule"
"""The same, in events of rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictEvents:
    """
    Makes the events of one scope's verdicts.

    Attributes:
        labels: Redacts the scopes of the events.
        parent_run: Returns the place in LangSmith's tree, if that sink is on.
        wall_ns: Nanoseconds since 1970 UTC.
    """

    labels: Labels
    drain: Drain
    tracing: Tracing
    parent_run: Callable[[], ParentRun | None]
    wall_ns: Callable[[], int]

    def emit(self, scope: Scope, verdict: VerdictEvent, content: Redacted | None = None) -> None:
        """Emit the event of a verdict on something that was done for *scope*."""
        about = VERDICT, RULE, verdict.rule
        self.tell(scope, verdict, about, content=content)

    def tell(
        self,
        scope: Scope,
        part: EventPart,
        about: tuple[str, str, str],
        *,
        content: Redacted | None = None,
        below: TraceRef | None = None,
        took_s: float = 0.0,
    ) -> None:
        """
        Emit the event of a notice, or of a model call that ended now and took *took_s* seconds.

        *about* is its operation, store and method.
        """
        # Below a span of another time there is no place of ours in LangSmith's tree of now.
        operation, store, method = about
        labels = self.labels.redacted(scope)
        event = Event(
            writer_id=self.drain.writer_id,
            writer_seq=self.drain.next_seq(),
            started_ns=self.wall_ns() - int(took_s * 1e9),
            duration_s=took_s,
            operation=operation,
            op_class=OperationClass.MODEL,
            store=store,
            method=method,
            status=Status.OK,
            trace=self.tracing.capture() if below is None else self.tracing.child(below),
            subject=self.labels.subject(scope),
            tenant=labels.tenant,
            agent=labels.agent,
            feature=labels.feature,
            run=labels.run,
            purpose=labels.purpose,
            parent_run=self.parent_run() if below is None else None,
            content=content,
            parts=(part,),
        )
        self.drain.emit(event)


@dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)
class ModelAccounting:
    """
    Counts the model calls of one scope.

    Attributes:
        budgets: What may be spent, and what was. None: no budget is set.
        prices: What model calls cost.
        labels: Redacts the scopes of their events.
        drain: Takes the events.
        tracing: Makes the ids of their spans.
        parent_run: Returns the place in LangSmith's tree, if that sink is on.
        host_run: Returns that of the host's own run there, whatever of ours is around.
        faults: Where errors of our own are noted.
        clock: Monotonic seconds.
        wall_ns: Nanoseconds since 1970 UTC.
        verdicts: Makes the events of what budgets refuse.
        rulebook: The rules of the scope, if it has any.
        decisions: What humans have decided, where a rule may ask them and there is a trail.
        observers: Take the beginnings and ends of runs, and may end them.
        tells_content: Whether events of runs have what went in and came out, redacted.
        unattributed_calls: Model calls begun in threads that had no customer, feature or node.
        is_closed: Whether the scope has closed, which then counts nothing.
    """

    budgets: Budgets | None
    prices: Prices
    labels: Labels
    drain: Drain
    tracing: Tracing
    parent_run: Callable[[], ParentRun | None]
    host_run: Callable[[], ParentRun | None]
    faults: Faults
    clock: Callable[[], float]
    wall_ns: Callable[[], int]
    verdicts: VerdictEvents
    rulebook: Rulebook | None = None
    decisions: Decisions | None = None
    observers: tuple[RunObserver, ...] = ()
    tells_content: bool = False
    unattributed_calls: int = 0
    is_closed: bool = False

    def __post_init__(self) -> None:
        """Begin to count anew in forked children, as budgets do."""
        reset_after_fork(self)

    def forked(self) -> None:
        """Count none of the parent's calls in a forked child."""
        self.unattributed_calls = 0

    def charge(self, scope: Scope, usage: Usage, *, failed: bool = False) -> None:
        """Count what a model call that ended has used. Never raises: the run goes on."""
        if self.budgets is None:
            return
        try:
            for crossing in self.budgets.add(scope, usage, failed=failed):
                self.drain.emit(self._event(crossing))
        except Exception as exc:  # noqa: BLE001 - observing fails open
            self.faults.note("budgets.add", exc)

    def tell(self, scope: Scope, usage: Usage, store: str, *, took_s: float) -> None:
        """Count what a model call that ended now has used, and emit its event. May raise."""
        if usage.reported:
            usage = msgspec.structs.replace(usage, cost_usd=self.prices.cost_usd(usage))
        self.charge(scope, usage)
        named = with_names(usage, self.labels.namer(scope))
        self.verdicts.tell(scope, named, ("chat", store, "run"), took_s=took_s)

    def refused(self, scope: Scope, refusal: BudgetExceededError) -> None:
        """Count a call for *scope* that was not made because of *refusal*, and emit the verdict."""
        verdict = None if self.budgets is None else self.budgets.note_refused(refusal)
        if verdict is not None:
            self.verdicts.emit(scope, verdict)

    def count_unattributed(self) -> None:
        """Count a model call that began in a thread without customer, feature and node."""
        self.unattributed_calls += 1

    def close(self) -> None:
        """Count no model call from now on, and let none wait."""
        self.is_closed = True
        if self.budgets is not None:
            self.budgets.close()

    def keep_decisions(self, decisions: Decisions) -> None:
        """Read what humans have decided from *decisions*, from now on: a rule asks them."""
        self.decisions = decisions

    def _event(self, crossing: BudgetEvent) -> Event:
        exceeded = crossing.level is Level.EXCEEDED
        return Event(
            writer_id=self.drain.writer_id,
            writer_seq=self.drain.next_seq(),
            started_ns=self.wall_ns(),
            duration_s=0.0,
            operation="budget_exceeded" if exceeded else "budget_alert",
            op_class=OperationClass.MODEL,
            store=STORE,
            method=crossing.budget,
            status=Status.OK,
            trace=self.tracing.capture(),
            parent_run=self.parent_run(),
            parts=(crossing,),
        )
