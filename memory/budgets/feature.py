"""Budgets as a feature of a scope: their health and their metrics."""

from __future__ import annotations

from collections.abc import Iterator

from ...telemetry.event.format import in_unit
from ...telemetry.event.kinds import Level
from ...telemetry.prometheus.live import LiveMetric, Sample, counter, latest
from ..features import Feature
from ..health.model import GRAVITY, Check, State
from .budgets import Budgets, BudgetStatus

_SHOWN = 5
"""Budgets whose state is told one by one, the worst first."""

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


def budgets_feature(budgets: Budgets) -> Feature:
    """Return the check and the samples of *budgets*."""
    return Feature(
        checks={"budgets": lambda: budgets_check(budgets)}, samples=lambda: _samples(budgets)
    )


def budgets_check(limits: Budgets) -> Check:
    """Check what is left of each budget, and whether it covers any model call."""
    found = [_of_budget(status, limits.calls) for status in limits.status()]
    found.sort(key=lambda each: -GRAVITY.index(each[0]))
    said = [text for _state, text in found[:_SHOWN]]
    if hidden := found[_SHOWN:]:
        said.append(f"{len(hidden)} more")
    return Check(name="budgets", state=found[0][0], detail="; ".join(said))


def _of_budget(status: BudgetStatus, calls: int) -> tuple[State, str]:
    budget = status.budget
    if not status.calls and calls:
        return State.WARNING, (
            f"{budget.name}: covers none of {calls:,} model calls so far: is what it names right?"
        )
    limit = in_unit(budget.limit, budget.unit)
    said = f"{budget.name}: {status.spent / budget.limit:.0%} of {limit} spent"
    if status.unpriced_calls:
        said += f", {status.unpriced_calls:,} calls without a price not counted"
    if status.level is Level.EXCEEDED and budget.on_exceeded == "stop":
        return State.FAILED, f"{said}, {status.refused_calls:,} calls refused"
    alarming = status.unpriced_calls or status.level in {Level.ALERT, Level.EXCEEDED}
    return (State.WARNING if alarming else State.OK), said


def _samples(budgets: Budgets) -> Iterator[Sample]:
    for status in budgets.status():
        yield from _samples_of(status)


def _samples_of(status: BudgetStatus) -> Iterator[Sample]:
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
