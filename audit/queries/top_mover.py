"""The feature whose spend changed most between two periods, and the reason, in one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ...telemetry.event.format import usd
from .spending import Dimension, Line, PeriodSpend, Spent

_MOVED = 0.02
"""Share of all that is spent below which a change is none."""

_MOSTLY = 0.5
"""Share of a feature's change that one of its nodes must have to be named."""

_TIMES = 2.0
"""From here on a change is shown as a factor, below in percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopMover:
    """
    The feature whose spend changed most.

    Attributes:
        feature: Its name. None: the calls that name none.
        model: The model that most of the change is due to, if one is.
    """

    feature: str | None
    now: Spent
    before: Spent
    model: str | None = None
    node: str | None = None

    @property
    def factor(self) -> float | None:
        """The cost as a multiple of that before; None where it cost nothing before."""
        return self.now.cost_usd / self.before.cost_usd if self.before.cost_usd else None


PARTS: Final[tuple[Dimension, ...]] = ("feature", "node", "model")
"""The least change that `moved_most` names."""


def moved_most(found: PeriodSpend) -> TopMover | None:
    """
    Return the feature that moved most, up or down; None where none did, to speak of.

    Args:
        found: What was spent by feature, node and model.
    """
    features: dict[str | None, list[Line]] = {}
    for line in found.lines:
        features.setdefault(line.names[0], []).append(line)
    changes = {name: sum(each.change_usd for each in lines) for name, lines in features.items()}
    if not changes:
        return None
    feature = max(changes, key=lambda name: abs(changes[name]))
    change, most = changes[feature], max(found.now.cost_usd, found.before.cost_usd)
    if not most or abs(change) < _MOVED * most:
        return None
    lines = features[feature]
    # Divided by the change, the largest part is the largest, whether it went up or down.
    part = max(lines, key=lambda line: line.change_usd / change)
    is_most = part.change_usd / change >= _MOSTLY
    return TopMover(
        feature=feature,
        now=_sum(line.now for line in lines),
        before=_sum(line.before for line in lines),
        node=part.names[1] if is_most else None,
        model=part.names[2] if is_most else None,
    )


def _sum(parts: Iterable[Spent]) -> Spent:
    return sum(parts, Spent())


def sentence(found: PeriodSpend) -> str:
    """
    Return one sentence: the feature whose spend changed most, or why there is none to name.

    Args:
        found: What was spent by feature, node and model.
    """
    if not found.lines:
        return "No model call was recorded."
    if not found.now.cost_usd and not found.before.cost_usd:
        return "No model that was called has a price: costs cannot be compared."
    if not found.before.calls:
        return f"{_dearest(found)}; nothing was recorded in the period before, to compare with."
    moved = moved_most(found)
    if moved is None:
        return "No feature moved: each spent what it did in the period before."
    return f"{_named(moved.feature)} {_how(moved)}{_where(moved)}."


def _named(feature: str | None) -> str:
    return feature or "What names no feature"


def _dearest(found: PeriodSpend) -> str:
    costs: dict[str | None, float] = {}
    for line in found.lines:
        costs[line.names[0]] = costs.get(line.names[0], 0.0) + line.now.cost_usd
    dearest = max(costs, key=lambda name: costs[name])
    share = costs[dearest] / found.now.cost_usd
    return f"{_named(dearest)} spent most: {usd(costs[dearest])}, {share:.0%} of all"


def _how(moved: TopMover) -> str:
    now, before = moved.now.cost_usd, moved.before.cost_usd
    up = f"up {usd(now - before)}" if now >= before else f"down {usd(before - now)}"
    factor = moved.factor
    if factor is None:
        return f"is new: it spent {usd(now)}, and nothing in the period before"
    if not now:
        return f"spent nothing, after {usd(before)} in the period before"
    if factor >= _TIMES:
        return f"spent {factor:,.1f} times as much as the period before: {usd(now)}, {up}"
    share = f"{abs(factor - 1):.0%} {'more' if now >= before else 'less'}"
    return f"spent {share} than the period before: {usd(now)}, {up}"


def _where(moved: TopMover) -> str:
    if moved.model is None:
        return ""
    return f"; mostly {moved.model}" + (f" in node {moved.node}" if moved.node else "")
