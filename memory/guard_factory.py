"""
The factory of guards, and the one place with the order of their steps.

Before the store they run from top to bottom, after it from bottom to top.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..telemetry.delivery.drain import Drain
from ..telemetry.event.event import OperationClass
from ..telemetry.event.parent_run import ParentRun
from ..telemetry.event.subject import SubjectKeys
from ..telemetry.event.trace import Tracing
from ..telemetry.process.faults import Faults
from ..telemetry.text import one_line
from .guard.call import Below, nothing_below
from .guard.shared_state import SharedState
from .guard.step import Around, Stay, Step
from .guard.steps.admit import Admit
from .guard.steps.answer import redacted_answer
from .guard.steps.redact import Redact
from .guard.steps.report import Parts, Report, UnattributedCalls, no_parent
from .guard.steps.tenancy import Tenancy
from .journal.late_writes import LateWrites, WaitForLateWrites
from .journal.replayer import Replayer
from .journal.writes import untold
from .limits.bulkhead import Bulkhead
from .limits.class_limits import ClassLimits, limits_by_class
from .limits.policy import Policy
from .limits.workers import Workers
from .scoped_redactor import ScopedRedactor

if TYPE_CHECKING:
    from .database import Database
    from .guard.call import Call
    from .guard.deadline import Deadline
    from .guard.failures import CallerMistake
    from .guard.guard import Guard
    from .guard.steps.audit_gate import AwaitAudit, RequireAudit
    from .guard.steps.classify import Classify
    from .journal.journal import Journal
    from .journal.step import JournalWrites
    from .journal.writes import JournalledWrites
    from .rules.sift import Sift
    from .rules.step import AskRules

NOT_KEPT = (
    "%s: it cannot be told which database this client writes to, so writes that it does not take "
    "are lost; name it: scope.guard(client, name=...)"
)

logger = logging.getLogger("mnemoscope")

Limits: TypeAlias = Mapping[OperationClass, ClassLimits]

_IMPORTED_LATE = (
    ".guard.failures",
    ".guard.guard",
    ".guard.outages",
    ".guard.steps.classify",
    ".guard.deadline",
    ".guard.steps.count_lost",
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
        drain: Takes the events.
        keys: Turns customers into subjects.
        policy: What is allowed.
        tracing: Captures trace ids.
        parent_run: Returns the place in LangSmith's tree, if that sink is on.
        workers: Threads for calls with a deadline.
        redactions: Places for long content that is redacted on them.
        faults: Where errors of our own are noted.
        journal: Keeps writes that a store did not take, if there is one.
        replayer: The thread that makes them again.
        late: The writes that outlived their callers.
        require_audit: Refuses calls that cannot be audited, where ``strict`` asks for it.
        await_audit: Waits for the audit trail, where ``durable`` asks for it.
        ask_rules: Makes the step that asks the rules, where there are any.
        sift: Makes the step that sifts answers by their place or origin, where a rule does.
        clock: Monotonic seconds.
        wall_ns: Nanoseconds since 1970 UTC.
        guards: The guards that are alive, for live metrics and health.
        shared: What guards share whose clients write to one database.
        unattributed: Counts the calls of which nobody is known.
        unnamed: Those of them whose writes would be kept if their database were known.
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
    journal: Journal | None = None
    replayer: Replayer
    late: LateWrites = msgspec.field(default_factory=LateWrites)
    require_audit: RequireAudit | None = None
    await_audit: AwaitAudit | None = None
    ask_rules: Callable[[str, Parts | None], AskRules] | None = None
    sift: Callable[[str], Sift] | None = None
    clock: Callable[[], float] = time.perf_counter
    wall_ns: Callable[[], int] = time.time_ns
    guards: weakref.WeakSet[Guard] = msgspec.field(default_factory=weakref.WeakSet["Guard"])
    shared: SharedState = msgspec.field(default_factory=SharedState)
    unattributed: UnattributedCalls = msgspec.field(default_factory=UnattributedCalls)
    unnamed: weakref.WeakSet[Guard] = msgspec.field(default_factory=weakref.WeakSet["Guard"])

    def guard(
        self,
        store: str,
        *,
        db_system: str | None = None,
        server: tuple[str, int] | None = None,
        caller_mistakes: Sequence[CallerMistake] = (),
        exits: bool = False,
        serialise: AbstractContextManager[Any] | None = None,
        blocks: Callable[[], bool] | None = None,
        stay: Stay | None = None,
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
            serialise: Held around each synchronous call, for clients that are not thread-safe.
            blocks: Tells of a client whose coroutines are synchronous code whether they are that
                now, so that they are run on threads. None: they are not.
            stay: Asked whether a synchronous call may stay on its caller's thread. None: it may
                not.
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
        from .guard.steps.count_lost import CountLostWrites  # noqa: PLC0415
        from .guard.steps.retry import Retry  # noqa: PLC0415

        store = one_line(store)
        limits = limits_by_class(self.policy, self.clock)
        failures = Failures(caller_mistakes, self.faults, exits=exits)
        classify = Classify(failures, self.faults, raise_unexpected=self.policy.raise_unexpected)
        deadline = Deadline(
            self.workers,
            self.clock,
            serialise=serialise,
            blocks=blocks,
            stay=stay,
            around=(Retry(classify.may_pass), *around) if retries else around,
        )
        redact = Redact(
            store,
            self.redactor,
            workers=self.workers,
            places=self.redactions,
            faults=self.faults,
            clock=self.clock,
        )
        sift = None if self.sift is None else self.sift(store)
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
            has_rules=self.ask_rules is not None,
            label=None if sift is None else sift.label,
        )
        admit = Admit(store, self.clock)
        late_writes = WaitForLateWrites(
            store,
            database=database or classify,
            late=self.late,
            touches=writes.touches if writes is not None else untold,
            clock=self.clock,
        )
        journal = (
            self._journal_step(
                store, writes, database, limits, admit, deadline, classify, report, below
            )
            or CountLostWrites()
        )
        ask_rules = self.ask_rules and self.ask_rules(store, parts)
        order = (
            self.await_audit,
            report,
            Tenancy(store, enforced=self.policy.enforce_tenancy, faults=self.faults),
            self.require_audit,
            redact,
            ask_rules,
            sift,
            late_writes,
            journal,
            *steps,
            admit,
            classify,
        )
        guard = Guard(
            store,
            steps=[step for step in order if step is not None],
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
        if self.journal is not None and writes is not None and database is None:
            self.unnamed.add(guard)
        return guard

    def _journal_step(  # noqa: PLR0917 - the steps that a replay works with
        self,
        store: str,
        writes: JournalledWrites | None,
        database: Database | None,
        limits: Limits,
        admit: Admit,
        deadline: Deadline,
        classify: Classify,
        report: Report,
        below: Below,
    ) -> JournalWrites | None:
        if self.journal is None or writes is None:
            return None
        if database is None:
            logger.warning(NOT_KEPT, store)
            return None
        from .journal.replay import Replay  # noqa: PLC0415 - they import sqlite3
        from .journal.replayed_call import ReplayedCalls  # noqa: PLC0415 - they import sqlite3
        from .journal.step import JournalWrites  # noqa: PLC0415 - they import sqlite3

        calls = ReplayedCalls(
            redactor=self.redactor,
            limits=limits,
            tracing=self.tracing,
            faults=self.faults,
            clock=self.clock,
            wall_ns=self.wall_ns,
            below=below,
        )
        replay = Replay(
            journal=self.journal,
            queue=self.journal.queue(database, store),
            writes=writes,
            calls=calls,
            admit=admit,
            deadline=deadline,
            classify=classify,
            report=report,
            workers=self.workers,
            faults=self.faults,
            clock=self.clock,
        )
        journal = JournalWrites(
            store,
            replay=replay,
            replayer=self.replayer,
            report=report,
            enforced_tenancy=self.policy.enforce_tenancy,
            workers=self.workers,
            faults=self.faults,
            clock=self.clock,
        )
        deadline.on_late = _weakly(journal)
        journal.watch()
        return journal


def _weakly(journal: JournalWrites) -> Callable[[Call], None]:
    """Return a callback for late calls that holds *journal* weakly: it holds the deadline."""
    journal_ref = weakref.ref(journal)

    def on_late(call: Call) -> None:
        if (found := journal_ref()) is not None:
            found.note_ended(call)

    return on_late
