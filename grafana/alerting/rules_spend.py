"""The alerts about spend: each feature against its own past, and budgets."""

from __future__ import annotations

from .promql import ORIGIN, WHOLE, RuleSpeed
from .rule import Alert, RecordingRule, RuleGroup, Severity

TIMES = 3
LEAST_USD = 1
"""Dollars per hour below which no alert fires."""

_HOUR = "feature:mnemoscope_cost_usd:increase1h"
_SHARE = "budget:mnemoscope_budget_used:ratio"
_BY = f"{ORIGIN}, budget"
_ALERT_AT = f"min by ({_BY}) (mnemoscope_budget_alert_ratio)"
"""Each budget's own `alert_at`, so that the alert tells what the process itself tells."""


def spend(pace: RuleSpeed) -> RuleGroup:
    """Return the rules about the cost of model calls."""
    return RuleGroup(
        name="spend",
        rules=[
            RecordingRule(
                name=_HOUR,
                expr=f"sum by ({ORIGIN}, feature) "
                f"(increase(mnemoscope_cost_usd_total[{pace('1h')}]))\n",
            ),
            RecordingRule(
                name=_SHARE,
                # Each process counts for itself: the one that spent most is reported.
                expr="\nor\n".join(
                    f"max by ({ORIGIN}, budget) (mnemoscope_budget_spent_{unit})\n"
                    f"/ (max by ({ORIGIN}, budget) (mnemoscope_budget_limit_{unit}) > 0)"
                    for unit in ("usd", "tokens")
                )
                + "\n",
            ),
            _jump(pace),
            _budget(
                "MnemoscopeBudgetNearlySpent",
                f">= on ({_BY}) ({_ALERT_AT}) < 1",
                "warning",
                "is nearly spent",
            ),
            _budget("MnemoscopeBudgetSpent", ">= 1", "critical", "is spent"),
        ],
    )


def _jump(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeFeatureSpendJump",
        # A feature that cost as much at this hour yesterday or a week ago is normal. One without
        # a yesterday cannot be compared.
        expr=f"{_HOUR}\n> {TIMES} * avg_over_time({_HOUR}[{pace('1d')}] offset {pace('1h')})\n"
        f"and {_HOUR} > {TIMES} * ({_HOUR} offset {pace('1d')})\n"
        f"unless {_HOUR} <= {TIMES} * ({_HOUR} offset {pace('7d')})\n"
        f"and {_HOUR} > {LEAST_USD}\n",
        wait=pace("10m"),
        severity="warning",
        summary="{{ $labels.feature }} costs three times what it used to",
        description="Model calls of {{ $labels.feature }} cost ${{ $value | humanize }} in the "
        "last hour: more than three times its mean over the day before, and more than three "
        "times the same hour yesterday and last week.",
        board="spend",
    )


def _budget(name: str, condition: str, severity: Severity, state: str) -> Alert:
    return Alert(
        name=name,
        expr=f"100 * ({_SHARE} {condition})\n",
        severity=severity,
        summary=f"The budget {{{{ $labels.budget }}}} {state}",
        description=f"{WHOLE} % of the budget {{{{ $labels.budget }}}} is "
        "used in its current period.",
        board="spend",
    )
