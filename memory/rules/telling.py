"""The event of a verdict, as every sink receives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...telemetry.delivery.drain import Drain
from ...telemetry.event.event import VERDICT, Event, Journalled, OperationClass, Status
from ...telemetry.event.parent_run import ParentRun
from ...telemetry.event.trace import Tracing
from ...telemetry.event.verdict_event import VerdictEvent
from ..context import Scope
from ..guard.labels import Labels

STORE = "rule"
"""What stands for a store in events of rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    """
    Emits the events of verdicts.

    Attributes:
        drain: Takes the events.
        labels: Redacts the scopes of the events.
        tracing: Makes the ids of their spans.
        parent_run: Returns the place in LangSmith's tree, if that sink is on.
        wall_ns: Nanoseconds since 1970 UTC.
    """

    drain: Drain
    labels: Labels
    tracing: Tracing
    parent_run: Callable[[], ParentRun | None]
    wall_ns: Callable[[], int]

    def __call__(self, scope: Scope, verdict: VerdictEvent) -> None:
        """Emit the event of *verdict*, for *scope*."""
        labels = self.labels.redacted(scope)
        self.drain.emit(
            Event(
                writer_id=self.drain.writer_id,
                writer_seq=self.drain.next_seq(),
                started_ns=self.wall_ns(),
                duration_s=0.0,
                operation=VERDICT,
                op_class=OperationClass.MODEL,
                store=STORE,
                method=verdict.rule,
                status=Status.OK,
                trace=self.tracing.capture(),
                journal=Journalled.NO,
                subject=self.labels.subject(scope),
                tenant=labels.tenant,
                agent=labels.agent,
                feature=labels.feature,
                run=labels.run,
                purpose=labels.purpose,
                parent_run=self.parent_run(),
                verdict=verdict,
            )
        )
