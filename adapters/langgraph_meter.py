"""What the runs of a graph took and used: an event for each, told once, and totals for the run."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final

from ..memory.budgets import Budgets
from ..memory.context import Scope, current, nested_feature
from ..memory.labels import Labels
from ..memory.runtime import Runtime
from ..memory.spending import spent
from ..telemetry.event import Event, OperationClass, Status
from ..telemetry.fork_guard import ForkGuard
from ..telemetry.prices import Prices
from ..telemetry.thawed import thawed
from ..telemetry.usage import Usage
from .langgraph_loops import Loops
from .langgraph_models import with_cost
from .langgraph_spans import Kind, Run, Told, used_in

STORES: Final = {
    Kind.GRAPH: "langgraph.graph",
    Kind.NODE: "langgraph.node",
    Kind.TOOL: "langgraph.tool",
    Kind.MODEL: "langgraph.model",
}

_new_event = thawed(Event)
_new_scope = thawed(Scope)  # `replace` costs five times that


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
        self._guard = ForkGuard()
        self._loops = Loops()
        self._labels: Labels | None = labels
        self._scopes: dict[tuple[tuple[str, ...], str | None], tuple[Scope, Scope]] = {}

    def let_go(self) -> None:
        """Keep the scope alive no longer: what still comes is told if others do."""
        self._runtime = self._labels = None
        self._scopes = {}

    def ended(self, run: Run, told: Told) -> None:
        """Count a run that ended, and tell of it unless this scope has been told already."""
        if not told.first(self):
            return
        usage = self._priced(run)
        made = None if run.status is Status.REJECTED else usage
        with self._guard:
            if made is not None:
                self.totals.add(made)
                self._loops.paid(run, made.cost_usd or 0.0)
            again = self._loops.ended(run)
        runtime = self._runtime or self._seen()
        if runtime is None or not told.first(runtime.drain):
            return
        if made is not None and len(runtime.budgets):
            spent(runtime, self.scope_of(run), made)
        if not runtime.faults.tripped:
            runtime.drain.emit(self._event(run, usage, again, runtime))

    def _priced(self, run: Run) -> Usage | None:
        if run.kind is not Kind.MODEL:
            return None
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
        scope, labels = self.scope_of(run), self._labels or Labels(runtime)
        ended = run.started if run.ended is None else run.ended
        iteration, cost_usd = again
        told = labels.told(scope)
        return _new_event(
            writer_id=runtime.drain.writer_id,
            writer_seq=runtime.drain.next_seq(),
            started_ns=run.started_ns,
            duration_s=max(0.0, ended - run.started),
            operation=run.kind.value,
            op_class=OperationClass.MODEL,
            store=STORES[run.kind],
            method=run.name,
            status=run.status,
            error=run.error,
            trace=run.ref,
            parent_run=runtime.parent_run() or self._parent_run,
            nested=run.kind is not Kind.MODEL and run.parent is not None,
            usage=usage,
            iteration=iteration,
            inner_cost_usd=cost_usd,
            subject=labels.subject(scope),
            tenant=told.tenant,
            agent=told.agent,
            feature=told.feature,
            run=told.run,
            purpose=told.purpose,
        )

    @property
    def budgets(self) -> Budgets | None:
        """What may be spent, by the scope that watches, while it lives."""
        runtime = self._runtime or self._seen()
        return None if runtime is None else runtime.budgets

    def scope_of(self, run: Run) -> Scope:
        """Return for whom and for which feature a run is."""
        given = run.metadata.get("thread_id")
        thread = given if isinstance(given, str) else None
        known = self._scopes.get((run.nodes, thread))
        # One entry, read once: another thread may put that of another customer in its place.
        if known is None or known[0] is not run.scope:
            known = run.scope, self._scope_of(run, thread)
            self._scopes[run.nodes, thread] = known
        return known[1]

    def _scope_of(self, run: Run, thread: str | None) -> Scope:
        scope = run.scope if run.scope is self._scope else run.scope.filled(self._scope)
        feature = self._feature(run, scope.feature)
        if feature != scope.feature:
            scope = replace(scope, feature=feature)
        if scope.run or thread is None:
            return scope
        return _new_scope(
            tenant=scope.tenant,
            customer=scope.customer,
            agent=scope.agent,
            feature=scope.feature,
            run=thread,
            purpose=scope.purpose,
            known=scope.known,
        )

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
