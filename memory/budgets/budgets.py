"""
The spend on each budget of a scope, and the refusal of calls that are over budget.

Spend is counted in this process, from its start, over a sliding window; each of several processes
has the whole budget. Memory is constant: 61 numbers a budget, whatever the number of calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ...telemetry.event.budget_event import BudgetEvent, Level
from ...telemetry.event.usage import Usage
from ...telemetry.process.fork import reset_after_fork
from ...telemetry.process.fork_lock import ForkLock
from ..context import Scope
from ..errors import BudgetExceededError, ConfigurationError
from .budget import Budget
from .sliding_window import SlidingSum

MAX_BUDGETS: Final = 200
"""Maximum number of budgets of a scope: each has metric series of its own."""

_PICO: Final = 10**12
"""Parts of a dollar to count in, as whole numbers: sums of fractions drift."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStatus:
    """
    The state of a budget now.

    Attributes:
        budget: The budget.
        spent: Amount spent in the period that ends now, in the budget's unit.
        burn_per_hour: Spend in an hour at the rate of the last tenth of a period.
        level: The highest level that `spent` has reached.
        calls: Model calls counted since the start.
        unpriced_calls: Covered calls without a price or a reported usage.
        refused_calls: Calls refused because the budget was exceeded.
        crossings: How often each level was crossed since the start.
    """

    budget: Budget
    spent: float
    burn_per_hour: float
    level: Level
    calls: int
    unpriced_calls: int
    refused_calls: int
    crossings: dict[Level, int]

    @property
    def left(self) -> float:
        """Amount that may still be spent now."""
        return max(0.0, self.budget.limit - self.spent)


class _BudgetSpend:
    """The spend on one budget. Not thread-safe."""

    def __init__(self, budget: Budget, now: float) -> None:
        self.budget = budget
        self._scale = _PICO if budget.unit == "usd" else 1
        self._levels = [
            (level, round(share * budget.limit * self._scale)) for level, share in budget.levels()
        ]
        self.reset(now)

    def reset(self, now: float) -> None:
        """Reset the spend to zero."""
        self._sum = SlidingSum(self.budget.period_s, now)
        self._crossed_at: dict[Level, float] = {}
        self.crossings = {level: 0 for level, _amount in self._levels}
        self.calls = self.unpriced_calls = self.refused_calls = 0

    def add(self, usage: Usage, now: float) -> list[BudgetEvent]:
        """Count a call and return the levels that it crossed, each once in a period."""
        self.calls += 1
        amount = self._amount(usage)
        if amount is None:
            self.unpriced_calls += 1
            return []
        self._sum.add(max(0, amount), now)
        spent = self._sum.total(now)
        crossed = [level for level, at in self._levels if spent >= at and self._is_due(level, now)]
        for level in crossed:
            self._crossed_at[level] = now
            self.crossings[level] += 1
        return [self._crossing(level, now) for level in crossed]

    def _amount(self, usage: Usage) -> int | None:
        if not usage.reported:
            return None
        if self.budget.unit == "tokens":
            return usage.input_tokens + usage.output_tokens
        return None if usage.cost_usd is None else round(usage.cost_usd * self._scale)

    def _is_due(self, level: Level, now: float) -> bool:
        last = self._crossed_at.get(level)
        return last is None or now - last >= self.budget.period_s

    def _crossing(self, level: Level, now: float) -> BudgetEvent:
        return BudgetEvent(
            budget=self.budget.name,
            level=level,
            unit=self.budget.unit,
            spent=self.spent(now),
            limit=self.budget.limit,
            period_s=self.budget.period_s,
            burn_per_hour=self._burn(now),
        )

    def spent(self, now: float) -> float:
        """Return the amount spent in the period that ends now."""
        return self._sum.total(now) / self._scale

    def _burn(self, now: float) -> float:
        return self._sum.per_second(now) * 3_600 / self._scale

    def level(self, now: float) -> Level:
        """Return the highest level that the spend has reached."""
        spent = self._sum.total(now)
        reached = (level for level, at in reversed(self._levels) if spent >= at)
        return next(reached, Level.WITHIN)

    def status(self, now: float) -> BudgetStatus:
        """Return the state of the budget."""
        return BudgetStatus(
            budget=self.budget,
            spent=self.spent(now),
            burn_per_hour=self._burn(now),
            level=self.level(now),
            calls=self.calls,
            unpriced_calls=self.unpriced_calls,
            refused_calls=self.refused_calls,
            crossings=dict(self.crossings),
        )


class Budgets:
    """
    The budgets of one scope and the spend on each. Thread-safe.

    Args:
        budgets: Budgets with different names.
        clock: Monotonic seconds.

    Attributes:
        calls: Model calls counted, whether a budget covers them or not.
        can_stop: Whether any budget has ``on_exceeded="stop"``.
        is_closed: Whether their scope has closed, which then counts nothing.
        unattributed_calls: Model calls begun in threads that had no customer, feature or node.

    Raises:
        ConfigurationError: Two have the same name, or there are too many.
    """

    def __init__(
        self, budgets: Iterable[Budget] = (), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._spends = [_BudgetSpend(each, clock()) for each in budgets]
        self._guard = ForkLock()
        self.calls = 0
        self.can_stop = any(spend.budget.on_exceeded == "stop" for spend in self._spends)
        self.is_closed = False
        self.unattributed_calls = 0
        _check([spend.budget.name for spend in self._spends])
        reset_after_fork(self)

    def forked(self) -> None:
        """Start with nothing spent in a forked child: the parent counts the earlier spend."""
        self.calls = self.unattributed_calls = 0
        for spend in self._spends:
            spend.reset(self._clock())

    def __len__(self) -> int:
        """Return the number of budgets."""
        return len(self._spends)

    def add(self, scope: Scope, usage: Usage) -> list[BudgetEvent]:
        """Count a finished model call and return the levels that it crossed."""
        if not self._spends:
            return []
        with self._guard:
            self.calls += 1
            now = self._clock()
            covering = [spend for spend in self._spends if spend.budget.covers(scope, usage.model)]
            return [crossing for spend in covering for crossing in spend.add(usage, now)]

    def note_unattributed(self) -> None:
        """Count a model call that begins and belongs to nobody."""
        with self._guard:
            self.unattributed_calls += 1

    def refusal(self, scope: Scope, model: str | None) -> BudgetExceededError | None:
        """Return the error that refuses a call, and count it. None: the call may be made."""
        if not self.can_stop or self.is_closed:
            return None
        with self._guard:
            now = self._clock()
            for spend in self._spends:
                budget = spend.budget
                if (
                    budget.on_exceeded == "stop"
                    and budget.covers(scope, model)
                    and spend.level(now) is Level.EXCEEDED
                ):
                    spend.refused_calls += 1
                    return BudgetExceededError(
                        budget.name, spend.spent(now), budget.limit, budget.unit
                    )
        return None

    def close(self) -> None:
        """Refuse no call from now on: the scope has closed, and counts none."""
        self.is_closed = True

    def status(self) -> tuple[BudgetStatus, ...]:
        """Return the state of each budget, in the given order."""
        with self._guard:
            now = self._clock()
            return tuple(spend.status(now) for spend in self._spends)


def _check(names: Sequence[str]) -> None:
    if len(names) > MAX_BUDGETS:
        raise ConfigurationError(f"a scope may have {MAX_BUDGETS} budgets, not {len(names)}")
    for place, name in enumerate(names, 1):
        if name in names[: place - 1]:
            raise ConfigurationError(
                f"budgets {names.index(name) + 1} and {place} have the same name: give one a name=…"
            )
