"""
The factory of guards.

It makes the steps that every guard has, and has the makers that it was given put them, and those of
features, in their order: see `memory.building.steps`.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from ..telemetry.delivery.drain import Drain
from ..telemetry.event.parent_run import ParentRun
from ..telemetry.event.subject import SubjectKeys
from ..telemetry.event.trace import Tracing
from ..telemetry.process.faults import Faults
from ..telemetry.text import one_line
from .guard.call import Below, nothing_below
from .guard.shared_state import SharedState
from .guard.step import Around, BreaksOff, Step, Turns
from .guard.steps.admit import Admit
from .guard.steps.answer import redacted_answer
from .guard.steps.redact import Redact
from .guard.steps.report import Parts, Report, UnattributedCalls, no_parent
from .guard.steps.tenancy import Tenancy
from .limits.bulkhead import Bulkhead
from .limits.class_limits import limits_by_class
from .limits.policy import Policy
from .limits.replayer import Replayer
from .limits.workers import Workers
from .scoped_redactor import ScopedRedactor

if TYPE_CHECKING:
    from .database import Database
    from .guard.failures import CallerMistake
    from .guard.guard import Guard
    from .guard.steps.making import StepMaker
    from .guard.writes import JournalledWrites

_IMPORTED_LATE = (
    ".guard.failures",
    ".guard.guard",
    ".guard.outages",
    ".guard.steps.classify",
    ".guard.deadline",
    ".guard.steps.count_lost",
    ".guard.steps.making",
    ".guard.steps.retry",
)


def import_guard() -> None:
    """
    Import now what a guard is made of.

    For guards that are made by their first call: a signal handler that makes that call while the
    first import is under way would meet a module without its names.
    """
    for name in _IMPORTED_LATE:
        import_module(name, __package__)


class GuardFactory(msgspec.Struct, kw_only=True, eq=False, weakref=True):
    """
    Makes the guards of one scope.

    Attributes:
        redactor: Begins the redaction of each call.
        parent_run: Returns the place in LangSmith's tree, if that sink is on.
        redactions: Places for long content that is redacted on them.
        faults: Where errors of our own are noted.
        replayer: The thread that makes again what waits.
        makers: Make the steps of each guard, in their order.
        clock: Monotonic seconds.
        wall_ns: Nanoseconds since 1970 UTC.
        guards: The guards that are alive, for live metrics and health.
        shared: What guards share whose clients write to one database.
        unattributed: Counts the calls of which nobody is known.
    """

    redactor: ScopedRedactor
    drain: Drain
    keys: SubjectKeys
    policy: Policy = msgspec.field(default_factory=Policy)
    tracing: Tracing = msgspec.field(default_factory=Tracing)
    parent_run: Callable[[], ParentRun | None] = no_parent
    workers: Workers = msgspec.field(default_factory=Workers)
    redactions: Bulkhead
    faults: Faults
    replayer: Replayer
    makers: tuple[StepMaker, ...]
    clock: Callable[[], float] = time.perf_counter
    wall_ns: Callable[[], int] = time.time_ns
    guards: weakref.WeakSet[Guard] = msgspec.field(default_factory=weakref.WeakSet["Guard"])
    shared: SharedState = msgspec.field(default_factory=SharedState)
    unattributed: UnattributedCalls = msgspec.field(default_factory=UnattributedCalls)

    def guard(
        self,
        store: str,
        *,
        db_system: str | None = None,
        server: tuple[str, int] | None = None,
        caller_mistakes: Sequence[CallerMistake] = (),
        exits: bool = False,
        turns: Turns | None = None,
        breaks_off: BreaksOff | None = None,
        writes: JournalledWrites | None = None,
        database: Database | None = None,
        steps: Sequence[Step] = (),
        around: Sequence[Around] = (),
        retries: bool = False,
        parts: Parts | None = None,
        public: bool | frozenset[str] = False,
        below: Below = nothing_below,
    ) -> Guard:
        """
        Return a new guard.

        Args:
            store: Its name in events and metrics.
            db_system: OpenTelemetry's name of the database, where the store is one.
            server: Host and port that the client asks, if it is known.
            caller_mistakes: Exceptions out of the store that are not its failure.
            exits: ``SystemExit`` is its failure.
            turns: How the client takes calls, if it is not thread-safe.
            breaks_off: Tells whether the client breaks a call off at its deadline.
            writes: How writes are kept in the journal and made again. None: they are not.
            database: What the client writes to. None: that is not known, and nothing is kept.
            steps: Steps of the adapter's own, between the journal and the breaker.
            around: What is around every call of the store, the innermost first.
            retries: Ask again inside a call, for classes whose policy says so.
            parts: Splits calls that hold several operations, each of which has an event.
            public: What the user says is nobody's personal data: all of it, or these parts.
            below: Returns the guards that the client does its own work in, each with the
                collections that are its own there. What is called elsewhere, from inside it, is
                judged as any other call.
        """
        # asyncio costs a tenth of the time to configure a scope: not before a client is wrapped.
        from .guard.deadline import Deadline  # noqa: PLC0415
        from .guard.failures import Failures  # noqa: PLC0415
        from .guard.guard import Guard  # noqa: PLC0415
        from .guard.steps.classify import Classify  # noqa: PLC0415
        from .guard.steps.making import GuardParts  # noqa: PLC0415
        from .guard.steps.retry import Retry  # noqa: PLC0415

        store = one_line(store)
        limits = limits_by_class(self.policy, self.clock)
        failures = Failures(caller_mistakes, self.faults, exits=exits)
        classify = Classify(failures, self.faults, raise_unexpected=self.policy.raise_unexpected)
        deadline = Deadline(
            self.workers,
            self.clock,
            turns=turns,
            around=(Retry(classify.may_pass), *around) if retries else around,
            breaks_off=None if self.policy.deadline_threads else breaks_off,
        )
        redact = Redact(
            store,
            self.redactor,
            workers=self.workers,
            places=self.redactions,
            faults=self.faults,
            clock=self.clock,
        )
        report = Report(
            store,
            db_system=db_system,
            server=server,
            drain=self.drain,
            keys=self.keys,
            faults=self.faults,
            clock=self.clock,
            tracing=self.tracing,
            parent_run=self.parent_run,
            unattributed=self.unattributed,
            open_redaction=redact.open,
            redactor=self.redactor,
            parts=parts,
            tells=redacted_answer if self.policy.tells_answers else None,
        )
        made = GuardParts(
            store=store,
            policy=self.policy,
            database=database,
            limits=limits,
            deadline=deadline,
            report=report,
            tenancy=Tenancy(store, enforced=self.policy.enforce_tenancy, faults=self.faults),
            redact=redact,
            admit=Admit(store, self.clock),
            classify=classify,
            steps=steps,
            splits=parts,
            below=below,
            writes=writes,
            redactor=self.redactor,
            tracing=self.tracing,
            workers=self.workers,
            replayer=self.replayer,
            faults=self.faults,
            clock=self.clock,
            wall_ns=self.wall_ns,
        )
        guard = Guard(
            store,
            steps=[step for make in self.makers for step in make(made)],
            deadline=deadline,
            limits=limits,
            tracing=self.tracing,
            faults=self.faults,
            clock=self.clock,
            wall_ns=self.wall_ns,
            database=database,
            text_to_embed=self.redactor.redactor.text_to_embed,
            public=public,
            below=below,
        )
        self.guards.add(guard)
        return guard
