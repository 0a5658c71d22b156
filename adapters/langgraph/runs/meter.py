"""Meter of one graph run: an event for each run in it, and totals of what models used."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final, Literal

from msgspec import structs

from ....memory.accounting import ModelAccounting
from ....memory.context import Scope, current, nested_feature
from ....memory.errors import BudgetExceededError
from ....memory.guard.labels import FAILED_SCOPE, Labels, with_names
from ....memory.guard.steps.report import no_parent
from ....memory.run_observers import ObservedRun
from ....telemetry.event.event import Event, Journalled, OperationClass, Status
from ....telemetry.event.node_run import NodeRun
from ....telemetry.event.parent_run import ParentRun
from ....telemetry.event.subject import Subject
from ....telemetry.event.usage import Usage
from .content import redacted
from .loops import Loops
from .model_calls import with_cost
from .run_tree import place_of
from .spans import Recipients, Run, RunKind, usage_of_run

_KINDS: Final[Mapping[RunKind, Literal["node", "model", "tool"]]] = {
    RunKind.NODE: "node",
    RunKind.MODEL: "model",
    RunKind.TOOL: "tool",
}


@dataclass(slots=True)
class Totals:
    """
    Tokens and cost of a run's model calls so far.

    Attributes:
        input_tokens: All input, cached included.
        output_tokens: All output, reasoning included.
        reasoning_tokens: Output the models kept to themselves.
        cost_usd: Of the calls whose model has a price.
        unpriced_calls: Calls whose cost is not known: their tokens are counted.
        is_counted: False once a stream has ended whose run was not found: nothing of it is counted.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    by_node: dict[str, Totals] = field(default_factory=dict[str, "Totals"], repr=False)
    is_counted: bool = True

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
class _ScopeEntry:
    """
    Scope and labels of the runs at one place of a graph.

    Attributes:
        code_scope: The scope of the code that made the latest of them.
        scope: That, with the graph's own thread and features.
        labels: The same, redacted for sinks. None: not asked for yet.
        name: Redacts names for sinks. None: not asked for yet.
    """

    code_scope: Scope
    scope: Scope
    labels: Scope | None = None
    subject: Subject | None = None
    name: Callable[[str], str] | None = None


class Meter:
    """
    The `GraphObserver` that counts and emits the runs of one graph run. Thread-safe.

    Args:
        features: Features by node name, for graphs whose code says nothing of features.

    Attributes:
        totals: Tokens and cost so far.
        trace: Ids of the run's span, below the span that is current where this is made.
        tracing: Makes the ids of spans inside.
        graph: The run, while it is observed.
        host_run: The host's place in LangSmith, where that is asked for.
    """

    def __init__(
        self,
        accounting: ModelAccounting,
        *,
        features: Mapping[str, str] | None = None,
    ) -> None:
        self.totals = Totals()
        self.graph: Run | None = None
        self.tracing = accounting.tracing
        self.trace = accounting.tracing.capture()
        self._accounting: ModelAccounting | None = accounting
        self._seen = weakref.ref(accounting)
        self._prices = accounting.prices
        self._features = features or {}
        # Of whoever starts the run: nodes run in the context of whoever reads it.
        self._scope = current()
        self.host_run = accounting.host_run()
        # Re-entrant: the collector may end a stream in here. A fork may leave it held, but a child
        # is told of no run that began before.
        self._guard = threading.RLock()
        self._loops = Loops()
        self._entries: dict[tuple[tuple[str, ...], str | None], _ScopeEntry] = {}

    def release(self) -> None:
        """Stop keeping the scope alive; runs that end later are reported if it still lives."""
        self._accounting = None
        self._entries = {}

    def run_ended(self, run: Run, recipients: Recipients | None) -> None:
        """Count a run that ended, and emit its event unless its scope's drain has it already."""
        if recipients is not None and not recipients.add(self):
            return
        usage = self._priced(run) if run.kind is RunKind.MODEL else None
        made = usage if usage is not None and run.status is not Status.REJECTED else None
        with self._guard:
            if made is not None:
                self.totals.add(made)
                self._loops.add_cost(run, made.cost_usd or 0.0)
            again = self._loops.count_run(run) if run.kind is RunKind.NODE else None
        accounting = self._accounting
        if accounting is None:
            accounting = self._seen()
        if accounting is None or (recipients is not None and not recipients.add(accounting.drain)):
            return
        if made is not None and accounting.budgets is not None:
            accounting.charge(self.scope_of(run), made, failed=run.status is not Status.OK)
        if not accounting.faults.tripped:
            event = self._event(run, usage, again, accounting)
            if accounting.tells_content:
                event = self._with_content(event, run, accounting)
            accounting.drain.emit(event)
        if accounting.observers and run.status is not Status.REJECTED:
            self._show(run, usage, accounting)

    def _show(self, run: Run, usage: Usage | None, accounting: ModelAccounting) -> None:
        """Give a run that ended to the observers of the scope."""
        answer, run.text = run.text, None
        for each in accounting.observers:
            try:
                failed = run.status is Status.ERROR
                each.ended(self.observed(run, usage=usage, answer=answer, failed=failed))
            except Exception as exc:  # noqa: BLE001 - observing fails open
                accounting.faults.note("graph.observer", exc)

    def observed(self, run: Run, **about: Any) -> ObservedRun:
        """Return *run* as observers are given it, with what else is known *about* it."""
        observed = ObservedRun(
            kind=_KINDS.get(run.kind, "graph"),  # a chain that has had no node yet
            run_id=run.run_id,
            name=run.name,
            nodes=run.nodes,
            scope=self.scope_of(run),
            graph=run.root(),
        )
        return replace(observed, **about)

    def refused(self, run: Run, refusal: BudgetExceededError) -> None:
        """Count a model call that was not made because of *refusal*."""
        if (accounting := self.accounting) is not None:
            accounting.refused(self.scope_of(run), refusal)

    def _priced(self, run: Run) -> Usage:
        usage = run.usage or usage_of_run(run)
        # Unknown usage has an unknown cost, not a cost of zero.
        cost_usd = self._prices.cost_usd(usage) if usage.reported else None
        return with_cost(usage, cost_usd)

    def _event(
        self,
        run: Run,
        usage: Usage | None,
        again: NodeRun | None,
        accounting: ModelAccounting,
    ) -> Event:
        drain, ended = accounting.drain, run.ended
        entry = self._entry_of(run)
        labels = entry.labels
        if labels is None:
            labels = self._label(entry, accounting.labels)
        name = entry.name
        if name is None:
            name = entry.name = accounting.labels.namer(entry.scope)
        said = again or run.tool if usage is None else with_names(usage, name)
        # By position: names cost fifteen times as much.
        return Event(
            drain.writer_id,
            drain.next_seq(),
            run.started_ns,
            ended - run.started if ended and ended > run.started else 0.0,
            run.kind.operation,
            OperationClass.MODEL,
            run.kind.store,
            name(run.name),
            run.status,
            run.ref,
            0.0,  # waited_s
            None,  # db_system
            None,  # collection
            None,  # deletes
            False,  # neutral
            False,  # late
            Journalled.NO,  # journal
            run.error,
            None,  # hits
            0,  # foreign_hits
            None,  # top_score
            None,  # size_bytes
            (),  # memory_ids
            (),  # scores
            {},  # redactions
            entry.subject,
            labels.tenant,
            labels.agent,
            labels.feature,
            labels.run,
            labels.purpose,
            None if accounting.host_run is no_parent else _place(run, name),
            run.kind is not RunKind.MODEL and run.parent is not None,
            None,  # content
            () if said is None else (said,),
        )

    def _with_content(self, event: Event, run: Run, accounting: ModelAccounting) -> Event:
        """Return *event* with what went into its run and came out of it, redacted."""
        try:
            redaction = accounting.labels.redaction(self.scope_of(run))
            given, answer = [
                None if each is None else redacted(each, redaction) for each in run.content
            ]
            return structs.replace(event, given=given, answer=answer)
        except Exception as exc:  # noqa: BLE001 - costs the event two fields
            accounting.faults.note("graph.content", exc)
            return event

    def _label(self, entry: _ScopeEntry, labels: Labels) -> Scope:
        entry.subject = labels.subject(entry.scope)
        redacted = labels.redacted(entry.scope)
        if redacted is not FAILED_SCOPE:  # the next event may be luckier than this one
            entry.labels = redacted
        return redacted

    @property
    def accounting(self) -> ModelAccounting | None:
        """The accounting of the scope that observes, while it lives."""
        return self._accounting or self._seen()

    def scope_of(self, run: Run) -> Scope:
        """Return the scope that a run is for: customer, feature, thread."""
        return self._entry_of(run).scope

    def _entry_of(self, run: Run) -> _ScopeEntry:
        thread = run.thread
        entry = self._entries.get((run.nodes, thread))
        # One entry, read once: another thread may put that of another customer in its place.
        if entry is None or entry.code_scope is not run.scope:
            entry = self._entries[run.nodes, thread] = _ScopeEntry(
                run.scope, self._scope_of(run, thread)
            )
        return entry

    def _scope_of(self, run: Run, thread: str | None) -> Scope:
        scope = run.scope if run.scope is self._scope else run.scope.with_defaults(self._scope)
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


def _place(run: Run, name: Callable[[str], str]) -> ParentRun:
    place = place_of(run)
    if not place.tags:
        return place
    return structs.replace(place, tags=tuple(map(name, place.tags)))
