"""The live metrics of a scope: calls in flight, breakers, queues, budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ...telemetry.otlp.span_counts import SpanCounts
from ...telemetry.prometheus.live import LiveMetric, Sample, counter, latest
from ...telemetry.prometheus.own_figures import of_faults, of_lanes
from ..budgets.budgets import Budgets, BudgetStatus
from ..guard_factory import GuardFactory
from ..limits.breaker import BreakerState

if TYPE_CHECKING:
    from ..guard.guard import Guard
    from ..journal.journal import Journal, JournalStats
    from ..rules.held_writes import Decisions

_STATE_VALUE = {BreakerState.CLOSED: 0.0, BreakerState.HALF_OPEN: 1.0, BreakerState.OPEN: 2.0}

_BUDGET_AMOUNTS = {
    unit: (
        LiveMetric(
            f"mnemoscope_budget_spent_{unit}",
            "What was spent of the budget in the period that ends now",
        ),
        LiveMetric(
            f"mnemoscope_budget_limit_{unit}", "What may be spent of the budget in a period"
        ),
        LiveMetric(
            f"mnemoscope_budget_burn_{unit}_per_hour",
            "What an hour costs at the pace of the last tenth of a period",
        ),
    )
    for unit in ("usd", "tokens")
}
_BUDGET_ALERT_RATIO = latest(
    "mnemoscope_budget_alert_ratio", "Share of the budget that needs attention"
)
_BUDGET_REFUSED_CALLS = counter(
    "mnemoscope_budget_refused_calls_total",
    "Model calls that were not made because the budget was spent",
)
_BUDGET_UNPRICED_CALLS = counter(
    "mnemoscope_budget_unpriced_calls_total",
    "Model calls that the budget covers and whose cost is not known",
)
_BUDGET_CROSSINGS = counter(
    "mnemoscope_budget_crossings_total",
    "How often the budget went past the level, once in a period at most",
)
# All processes and scopes that share a journal tell the same of it: it must not be added up.
_JOURNAL_WAITING = latest(
    "mnemoscope_journal_waiting", "Writes that wait in the journal for their store to be back"
)
_JOURNAL_PARKED = latest(
    "mnemoscope_journal_parked", "Writes that were set aside: the store will not take them as is"
)
_JOURNAL_OLDEST_SECONDS = latest(
    "mnemoscope_journal_oldest_seconds", "How long the oldest of those that wait has waited"
)
_JOURNAL_BYTES = latest("mnemoscope_journal_bytes", "Used size of the journal's file")
_JOURNAL_LIMIT_BYTES = latest(
    "mnemoscope_journal_limit_bytes", "Size beyond which the journal takes nothing more"
)
_JOURNAL_OPEN = latest(
    "mnemoscope_journal_open", "1 if the journal can be read, 0 if it could not be opened"
)
_OPERATIONS_IN_FLIGHT = LiveMetric(
    "mnemoscope_operations_in_flight", "Calls inside a store now, the hung ones included"
)
_BREAKER_STATE = latest(
    "mnemoscope_breaker_state", "0 closed, 1 half open, 2 open: the store is not asked"
)
_LATE_RESULTS = counter(
    "mnemoscope_late_results_total", "Calls that ended after their caller had gone"
)
_CONFLICTS = counter(
    "mnemoscope_checkpoint_conflicts_total",
    "Threads that somebody else changed while writes to them waited in this process",
)

_REDACTED_SPANS = counter(
    "mnemoscope_redacted_spans_total",
    "Spans of the application's own exporters, by what redaction made of them",
)


_APPROVAL_AGREEMENT = latest(
    "mnemoscope_approval_agreement_ratio",
    "Share of humans' decisions that agree with what the gate would have done",
)
_APPROVAL_AUTO = latest(
    "mnemoscope_approval_auto", "1 if the gate goes on by itself, 0 if it asks a human"
)
_APPROVALS_WAITING = latest(
    "mnemoscope_approvals_waiting", "What the rule holds, and no human has decided yet"
)
_APPROVALS_AGE_S = 30.0
_MOST_GATES = 64


class LiveMetrics:
    """
    Reads the live metrics of one scope at a scrape.

    Args:
        guards: Its guards are read one by one, and its drain.
        budgets: What may be spent, and what was.
        spans: Counts of the spans that redacting exporters saw.
        decisions: Returns what humans have decided, once there is a rule that asks them.
        journal: Keeps writes that a store did not take, if there is one.
        others: Return the samples of other packages' features.
    """

    def __init__(
        self,
        guards: GuardFactory,
        budgets: Budgets,
        spans: SpanCounts | None = None,
        decisions: Callable[[], Decisions | None] = lambda: None,
        *,
        journal: Journal | None = None,
        others: Sequence[Callable[[], Iterable[Sample]]] = (),
    ) -> None:
        self._decisions = decisions
        self._guards = guards
        self._budgets = budgets
        self._journal = journal
        self._others = others
        self._spans = spans

    def read(self) -> Iterator[Sample]:
        """Yield all samples of the scope."""
        for guard in list(self._guards.guards):
            yield from _of_guard(guard)
        yield from of_lanes(self._guards.drain.stats())
        if self._journal is not None:
            stats, keeping = self._journal.stats(), _keeping(self._guards)
            yield from _of_journal(stats, keeping, self._guards.wall_ns())
        for status in self._budgets.status():
            yield from _of_budget(status)
        if (decisions := self._decisions()) is not None:
            yield from self._of_gates(decisions)
        for samples in self._others:
            try:
                yield from [*samples()]
            except Exception as exc:  # noqa: BLE001 - costs a scrape what that feature shows
                self._guards.faults.note("feature.samples", exc)
        yield from of_faults(self._guards.faults)
        if self._spans is not None and self._spans.exporters:
            for outcome, count in self._spans.by_outcome().items():
                yield _REDACTED_SPANS.sample(count, outcome=outcome.value)

    def _of_gates(self, decisions: Decisions) -> Iterator[Sample]:
        from ..rules.agreement import WINDOW  # noqa: PLC0415 - only where there are rules

        try:
            found = decisions.figures(WINDOW, _APPROVALS_AGE_S)[:_MOST_GATES]
        except Exception as exc:  # noqa: BLE001 - costs a scrape these metrics
            self._guards.faults.note("rules.figures", exc)
            return
        for gate, share, is_auto, waiting in found:
            if share is not None:
                yield _APPROVAL_AGREEMENT.sample(share, rule=gate)
            yield _APPROVAL_AUTO.sample(float(is_auto), rule=gate)
            yield _APPROVALS_WAITING.sample(waiting, rule=gate)


def _of_budget(status: BudgetStatus) -> Iterator[Sample]:
    budget = status.budget
    labels = {"budget": budget.name}
    spent, limit, burn = _BUDGET_AMOUNTS[budget.unit]
    yield spent.sample(status.spent, **labels)
    yield limit.sample(budget.limit, **labels)
    yield burn.sample(status.burn_per_hour, **labels)
    yield _BUDGET_ALERT_RATIO.sample(budget.alert_at, **labels)
    yield _BUDGET_REFUSED_CALLS.sample(status.refused_calls, **labels)
    yield _BUDGET_UNPRICED_CALLS.sample(status.unpriced_calls, **labels)
    for level, count in status.crossings.items():
        yield _BUDGET_CROSSINGS.sample(count, **labels, level=level.value)


def _keeping(guards: GuardFactory) -> set[str]:
    """Return the stores whose writes are kept."""
    # asyncio costs a tenth of the time to configure a scope; a guard has imported it already.
    from ..journal.step import JournalWrites  # noqa: PLC0415

    return {
        guard.store
        for guard in list(guards.guards)
        if any(isinstance(step, JournalWrites) for step in guard.steps)
    }


def _of_journal(stats: JournalStats, keeping: set[str], now_ns: int) -> Iterator[Sample]:
    for metric, counts in ((_JOURNAL_WAITING, stats.waiting), (_JOURNAL_PARKED, stats.parked)):
        for store in sorted({*counts, *keeping}):
            yield metric.sample(counts.get(store, 0), store=store)
    yield _JOURNAL_OLDEST_SECONDS.sample(
        0.0 if stats.oldest_ns is None else max(0.0, (now_ns - stats.oldest_ns) / 1e9)
    )
    yield _JOURNAL_BYTES.sample(stats.size_bytes)
    yield _JOURNAL_LIMIT_BYTES.sample(stats.max_bytes)
    yield _JOURNAL_OPEN.sample(float(stats.path is not None))


def _of_guard(guard: Guard) -> Iterator[Sample]:
    for op_class, limits in guard.limits.items():
        labels = {"store": guard.store, "class": op_class.value}
        yield _OPERATIONS_IN_FLIGHT.sample(limits.bulkhead.in_flight, **labels)
        yield _BREAKER_STATE.sample(_STATE_VALUE[limits.breaker.state], **labels)
    yield _LATE_RESULTS.sample(guard.deadline.late_results, store=guard.store)
    for step in guard.waiting:
        yield _CONFLICTS.sample(step.conflicts, store=guard.store)
