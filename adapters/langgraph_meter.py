"""What the runs of a graph took and used: an event for each, told once, and totals for the run."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from ..memory.budgets import Budgets
from ..memory.context import Scope, current, nested_feature
from ..memory.labels import UNTOLD, Labels
from ..memory.runtime import Runtime
from ..memory.spending import spent
from ..telemetry.event import Event, Journalled, OperationClass, Status
from ..telemetry.prices import Prices
from ..telemetry.subject import Subject
from ..telemetry.thawed import draft_of
from ..telemetry.usage import Usage
from .langgraph_loops import Loops
from .langgraph_models import with_cost
from .langgraph_spans import Kind, Run, Told, used_in

_draft: Callable[[], Any] = draft_of(Event)


@dataclass(slots=True)
class Totals:
    """
    What the model calls of a run used so far.

    Attributes:
        calls: Calls that ended.
        input_tokens: All input, cached included.
        output_tokens: All output, reasoning included.
        cached_tokens: Input read from caches.
        cache_write_tokens: Input written to caches.
        reasoning_tokens: Output the models kept to themselves.
        cost_usd: Of the calls whose model has a price.
        unpriced_calls: Calls whose cost is not known: their tokens are counted.
        by_node: The same by LangGraph node.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    by_node: dict[str, Totals] = field(default_factory=dict[str, "Totals"])

    def add(self, usage: Usage) -> None:
        """Add one call, here and under its node."""
        self.count(usage)
        node = usage.node or ""
        if node not in self.by_node:
            self.by_node[node] = Totals()
        self.by_node[node].count(usage)

    def count(self, usage: Usage) -> None:
        """Add one call here."""
        self.calls += 1
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cached_tokens += usage.cached_tokens
        self.cache_write_tokens += usage.cache_write_tokens
        self.reasoning_tokens += usage.reasoning_tokens
        self.unpriced_calls += usage.cost_usd is None
        self.cost_usd += usage.cost_usd or 0.0


@dataclass(slots=True)
class _Known:
    """
    For whom the runs in one place of a graph are.

    Attributes:
        made_of: The scope of the code that made the latest of them.
        scope: That, and what the graph adds to it.
        told: What sinks may know of it, once somebody has asked.
        subject: Its customer.
    """

    made_of: Scope
    scope: Scope
    told: Scope | None = None
    subject: Subject | None = None


class Meter:
    """
    Watches one run of a graph. Safe to be told of runs from many threads.

    Args:
        runtime: Drain, redactor, keys, tracing.
        prices: For the cost.
        labels: What sinks may know of scopes.
        features: Features by node name, for graphs whose code says nothing of features.

    Attributes:
        totals: What was used so far.
        trace: Ids of the run's span, below the span that is current where this is made.
        tracing: Makes the ids of spans inside.
        graph: The run, while it is watched.
    """

    def __init__(
        self,
        runtime: Runtime,
        prices: Prices,
        *,
        labels: Labels,
        features: Mapping[str, str] | None = None,
    ) -> None:
        self.totals = Totals()
        self.graph: Run | None = None
        self.tracing = runtime.tracing
        self.trace = runtime.tracing.capture()
        self._runtime: Runtime | None = runtime
        self._seen = weakref.ref(runtime)
        self._prices = prices
        self._features = features or {}
        # Of whoever starts the run: nodes run in the context of whoever reads it.
        self._scope = current()
        self._parent_run = runtime.parent_run()
        # Re-entrant: the collector may end a stream in here. A fork may leave it held, but a child
        # is told of no run that began before.
        self._guard = threading.RLock()
        self._loops = Loops()
        self._labels: Labels | None = labels
        self._known: dict[tuple[tuple[str, ...], str | None], _Known] = {}

    def let_go(self) -> None:
        """Keep the scope alive no longer: what still comes is told if others do."""
        self._runtime = self._labels = None
        self._known = {}

    def ended(self, run: Run, told: Told | None) -> None:
        """Count a run that ended, and tell of it unless this scope has been told already."""
        if told is not None and not told.first(self):
            return
        usage = self._priced(run) if run.kind is Kind.MODEL else None
        made = None if run.status is Status.REJECTED else usage
        with self._guard:
            if made is not None:
                self.totals.add(made)
                self._loops.paid(run, made.cost_usd or 0.0)
            again = self._loops.ended(run) if run.kind is Kind.NODE else (None, None)
        runtime = self._runtime or self._seen()
        if runtime is None or (told is not None and not told.first(runtime.drain)):
            return
        if made is not None and len(runtime.budgets):
            spent(runtime, self.scope_of(run), made)
        if not runtime.faults.tripped:
            runtime.drain.emit(self._event(run, usage, again, runtime))

    def _priced(self, run: Run) -> Usage:
        usage = run.usage or used_in(run)
        # What is not known costs what is not known: never zero instead.
        cost_usd = self._prices.cost_usd(usage) if usage.reported else None
        return with_cost(usage, cost_usd)

    def _event(
        self,
        run: Run,
        usage: Usage | None,
        again: tuple[int | None, float | None],
        runtime: Runtime,
    ) -> Event:
        drain, ended = runtime.drain, run.ended
        # In plain steps, and every one of the fields: a constructor costs twice that.
        event = _draft()
        event.writer_id = drain.writer_id
        event.writer_seq = drain.next_seq()
        event.started_ns = run.started_ns
        event.duration_s = ended - run.started if ended and ended > run.started else 0.0
        event.operation = run.kind.operation
        event.op_class = OperationClass.MODEL
        event.store = run.kind.store
        event.method = run.name
        event.status = run.status
        event.error = run.error
        event.trace = run.ref
        event.parent_run = runtime.parent_run() or self._parent_run
        event.nested = run.kind is not Kind.MODEL and run.parent is not None
        event.usage = usage
        event.iteration, event.inner_cost_usd = again
        return self._told_for_whom(event, run, runtime)

    def _told_for_whom(self, event: Any, run: Run, runtime: Runtime) -> Event:
        """Fill the rest of a draft, and make it an event."""
        known = self._known_of(run)
        told = known.told
        if told is None:
            told = self._labelled(known, runtime)
        event.subject = known.subject
        event.tenant = told.tenant
        event.agent = told.agent
        event.feature = told.feature
        event.run = told.run
        event.purpose = told.purpose
        # What only operations on stores have.
        event.collection = event.hits = event.top_score = event.size_bytes = None
        event.crossing = event.content = None
        event.memory_ids = event.scores = ()
        event.waited_s, event.foreign_hits, event.redactions = 0.0, 0, {}
        event.neutral = event.late = False
        event.journal = Journalled.NO
        event.__class__ = Event
        made: Event = event
        return made

    def _labelled(self, known: _Known, runtime: Runtime) -> Scope:
        labels = self._labels or Labels(runtime)
        known.subject = labels.subject(known.scope)
        told = labels.told(known.scope)
        if told is not UNTOLD:  # of what could not be redacted now, the next event may tell
            known.told = told
        return told

    @property
    def budgets(self) -> Budgets | None:
        """What may be spent, by the scope that watches, while it lives."""
        runtime = self._runtime or self._seen()
        return None if runtime is None else runtime.budgets

    def scope_of(self, run: Run) -> Scope:
        """Return for whom and for which feature a run is."""
        return self._known_of(run).scope

    def _known_of(self, run: Run) -> _Known:
        given = run.metadata.get("thread_id")
        thread = given if isinstance(given, str) else None
        known = self._known.get((run.nodes, thread))
        # One entry, read once: another thread may put that of another customer in its place.
        if known is None or known.made_of is not run.scope:
            known = self._known[run.nodes, thread] = _Known(run.scope, self._scope_of(run, thread))
        return known

    def _scope_of(self, run: Run, thread: str | None) -> Scope:
        scope = run.scope if run.scope is self._scope else run.scope.filled(self._scope)
        feature = self._feature(run, scope.feature)
        if feature != scope.feature:
            scope = replace(scope, feature=feature)
        return scope if scope.run or thread is None else replace(scope, run=thread)

    def _feature(self, run: Run, said: str | None) -> str | None:
        """Return the path of features: the caller's, the nodes', and what the code inside says."""
        if not self._features:
            return said
        named = [self._features[node] for node in run.nodes if node in self._features]
        if not named:
            return said
        outer = self._scope.feature
        inner = said.removeprefix(outer).removeprefix("/") if said and outer else said
        return reduce(nested_feature, [*named, inner or None], outer)
