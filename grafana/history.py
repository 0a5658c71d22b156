"""A history of spend, for panels that compare with yesterday and last week."""

from __future__ import annotations

from collections.abc import Iterator

_DAY_S, _STEP_S = 86_400, 300


def spend_history(now_s: float, *, days: int = 8) -> str:
    """
    Return OpenMetrics text of two features' cost, until ten minutes before *now_s*.

    Spend is high by day and low by night, in dollars by the demo's prices.
    """
    first = int(now_s) - days * _DAY_S
    last = int(now_s) - 600
    lines = ["# TYPE mnemoscope_cost_usd counter"]
    for feature, usd in (("reply-outline", 0.002), ("reply-draft", 0.0025)):
        labels = f'feature="{feature}",model="scripted-concierge",job="demo",instance="earlier"'
        for at_s, spent in _spent(first, last, usd):
            lines.append(f"mnemoscope_cost_usd_total{{{labels}}} {spent:.6f} {at_s}")
    return "\n".join([*lines, "# EOF", ""])


def _spent(first: int, last: int, usd: float) -> Iterator[tuple[int, float]]:
    spent = 0.0
    for at_s in range(first, last, _STEP_S):
        yield at_s, spent
        hour = at_s % _DAY_S // 3_600
        spent += usd if 7 <= hour < 20 else usd / 5  # noqa: PLR2004 - working hours
