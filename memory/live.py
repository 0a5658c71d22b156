"""The figures of a scope that are true only now: in flight, breakers, queues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..telemetry.prometheus_live import Sample
from .breaker import BreakerState
from .budgets import BudgetStatus
from .runtime import Runtime

if TYPE_CHECKING:
    from .guard import Guard
    from .journal.journal import JournalStats

_STATE_VALUE = {BreakerState.CLOSED: 0.0, BreakerState.HALF_OPEN: 1.0, BreakerState.OPEN: 2.0}


class LiveFigures:
    """
    Reads the figures of one scope when Prometheus asks.

    Args:
        runtime: The scope's services; its guards are asked one by one.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def read(self) -> Iterator[Sample]:
        """Yield every live figure of the scope."""
        for guard in list(self._runtime.guards):
            yield from _of_guard(guard)
        yield from self._of_lanes()
        if self._runtime.journal is not None:
            yield from _of_journal(self._runtime.journal.stats(), self._runtime.wall_ns())
        for status in self._runtime.budgets.status():
            yield from _of_budget(status)
        for site, count in list(self._runtime.faults.counts.items()):
            yield Sample(
                name="mnemoscope_internal_errors_total",
                labels={"site": site},
                value=count,
                kind="counter",
                help="Errors of mnemoscope's own code, none of which reached the caller",
            )

    def _of_lanes(self) -> Iterator[Sample]:
        for lane in self._runtime.drain.stats():
            sink = {"sink": lane.sink}
            yield Sample(
                name="mnemoscope_sink_queue_events",
                labels=sink,
                value=lane.queued,
                help="Events that wait for the sink",
            )
            yield Sample(
                name="mnemoscope_sink_queue_bytes",
                labels=sink,
                value=lane.queued_bytes,
                help="Weight of the events that wait for the sink",
            )
            yield Sample(
                name="mnemoscope_sink_down",
                labels=sink,
                value=float(not lane.is_up),
                merge="max",
                help="1 while the sink's back end takes nothing and events wait for it",
            )
            yield Sample(
                name="mnemoscope_sink_events_total",
                labels=sink,
                value=lane.delivered,
                kind="counter",
                help="Events delivered to the sink",
            )
            for reason, count in lane.dropped.items():
                yield Sample(
                    name="mnemoscope_sink_dropped_total",
                    labels={**sink, "reason": reason},
                    value=count,
                    kind="counter",
                    help="Events lost on the way to the sink, by reason",
                )


def _of_budget(status: BudgetStatus) -> Iterator[Sample]:
    budget = status.budget
    labels = {"budget": budget.name}
    yield Sample(
        name=f"mnemoscope_budget_spent_{budget.unit}",
        labels=labels,
        value=status.spent,
        help="What was spent of the budget in the period that ends now",
    )
    yield Sample(
        name=f"mnemoscope_budget_limit_{budget.unit}",
        labels=labels,
        value=budget.limit,
        help="What may be spent of the budget in a period",
    )
    yield Sample(
        name=f"mnemoscope_budget_burn_{budget.unit}_per_hour",
        labels=labels,
        value=status.burn_per_hour,
        help="What an hour costs at the pace of the last tenth of a period",
    )
    yield Sample(
        name="mnemoscope_budget_refused_calls_total",
        labels=labels,
        value=status.refused_calls,
        kind="counter",
        help="Model calls that were not made because the budget was spent",
    )
    yield Sample(
        name="mnemoscope_budget_unpriced_calls_total",
        labels=labels,
        value=status.unpriced_calls,
        kind="counter",
        help="Model calls that the budget covers and whose cost is not known",
    )
    for level, count in status.crossings.items():
        yield Sample(
            name="mnemoscope_budget_crossings_total",
            labels={**labels, "level": level.value},
            value=count,
            kind="counter",
            help="How often the budget went past the level, once in a period at most",
        )


def _of_journal(stats: JournalStats, now_ns: int) -> Iterator[Sample]:
    for key, waiting in stats.waiting.items():
        yield Sample(
            name="mnemoscope_journal_waiting",
            labels={"store": key},
            value=waiting,
            help="Writes that wait in the journal for their store to be back",
        )
    yield Sample(
        name="mnemoscope_journal_oldest_seconds",
        value=0.0 if stats.oldest_ns is None else max(0.0, (now_ns - stats.oldest_ns) / 1e9),
        merge="max",
        help="How long the oldest of them has waited",
    )
    yield Sample(
        name="mnemoscope_journal_bytes",
        value=stats.size_bytes,
        help="Size of the journal's file",
    )
    yield Sample(
        name="mnemoscope_journal_limit_bytes",
        value=stats.max_bytes,
        help="Size beyond which the journal takes nothing more",
    )
    yield Sample(
        name="mnemoscope_journal_open",
        value=float(stats.path is not None),
        help="1 if the journal can be written, 0 if it could not be opened",
    )
    yield Sample(
        name="mnemoscope_journal_quarantined_total",
        value=len(stats.quarantined),
        kind="counter",
        help="Journal files, or parts of one, that could not be read and were put aside",
    )


def _of_guard(guard: Guard) -> Iterator[Sample]:
    for op_class, bulkhead in guard.bulkheads.items():
        labels = {"store": guard.store, "class": op_class.value}
        yield Sample(
            name="mnemoscope_operations_in_flight",
            labels=labels,
            value=bulkhead.in_flight,
            help="Calls inside a store now, the hung ones included",
        )
        yield Sample(
            name="mnemoscope_breaker_state",
            labels=labels,
            value=_STATE_VALUE[guard.breakers[op_class].state],
            merge="max",
            help="0 closed, 1 half open, 2 open: the store is not asked",
        )
    yield Sample(
        name="mnemoscope_late_results_total",
        labels={"store": guard.store},
        value=guard.late_results,
        kind="counter",
        help="Calls that ended after their caller had gone",
    )
