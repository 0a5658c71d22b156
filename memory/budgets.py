"""
What was spent of each budget of a scope, and whether the next model call may be made.

Spend is counted in this process, from its start, over a sliding window; of several processes each
has the budget for itself. Memory is constant: 61 numbers a budget, however many calls there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ..telemetry.crossing import Crossing, Level
from ..telemetry.fork import reset_after_fork
from ..telemetry.fork_guard import ForkGuard
from ..telemetry.usage import Usage
from .budget import Budget
from .context import Scope
from .errors import BudgetExceededError, ConfigurationError
from .sliding import SlidingSum

MOST: Final = 200
"""Budgets of one scope: each has series of its own."""

_PICO: Final = 10**12
"""Parts of a dollar that are counted: whole numbers, since sums of fractions drift."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStatus:
    """
    How a budget stands now.

    Attributes:
        budget: Which.
        spent: In the period that ends now, in the budget's unit.
        burn_per_hour: What an hour costs at the pace of the last tenth of a period.
        level: The highest level that `spent` has reached.
        calls: Model calls that were counted since the start.
        unpriced_calls: Calls that it covers and cannot count: no price, or no usage reported.
        refused_calls: Calls that were not made because it was exceeded.
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
        """What may still be spent now."""
        return max(0.0, self.budget.limit - self.spent)


class _Book:
    """What was spent of one budget. Not thread-safe."""

    def __init__(self, budget: Budget, now: float) -> None:
        self.budget = budget
        self._scale = _PICO if budget.unit == "usd" else 1
        self._levels = [
            (level, round(share * budget.limit * self._scale)) for level, share in budget.levels()
        ]
        self.begin(now)

    def begin(self, now: float) -> None:
        """Forget what was spent."""
        self._sum = SlidingSum(self.budget.period_s, now)
        self._crossed_at: dict[Level, float] = {}
        self.crossings = {level: 0 for level, _amount in self._levels}
        self.calls = self.unpriced_calls = self.refused_calls = 0

    def add(self, usage: Usage, now: float) -> list[Crossing]:
        """Count a call, and return the levels that it crossed: each once in a period."""
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

    def _crossing(self, level: Level, now: float) -> Crossing:
        return Crossing(
            budget=self.budget.name,
            level=level,
            unit=self.budget.unit,
            spent=self.spent(now),
            limit=self.budget.limit,
            period_s=self.budget.period_s,
            burn_per_hour=self._burn(now),
        )

    def spent(self, now: float) -> float:
        """Return what was spent in the period that ends now."""
        return self._sum.total(now) / self._scale

    def _burn(self, now: float) -> float:
        return self._sum.per_second(now) * 3_600 / self._scale

    def level(self, now: float) -> Level:
        """Return the highest level that the spend has reached."""
        spent = self._sum.total(now)
        reached = (level for level, at in reversed(self._levels) if spent >= at)
        return next(reached, Level.WITHIN)

    def status(self, now: float) -> BudgetStatus:
        """Return how it stands."""
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
    The budgets of one scope, and what was spent of each. Thread-safe.

    Args:
        budgets: Their names differ.
        clock: Monotonic seconds.

    Attributes:
        calls: Model calls that were counted, covered by a budget or not.
        can_stop: Whether one of them stops.

    Raises:
        ConfigurationError: Two have the same name, or there are too many.
    """

    def __init__(
        self, budgets: Iterable[Budget] = (), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._books = [_Book(each, clock()) for each in budgets]
        self._guard = ForkGuard()
        self.calls = 0
        self.can_stop = any(book.budget.on_exceeded == "stop" for book in self._books)
        _check([book.budget.name for book in self._books])
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin with nothing spent in a child: the parent counts what was spent before."""
        self.calls = 0
        for book in self._books:
            book.begin(self._clock())

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._books)

    def add(self, scope: Scope, usage: Usage) -> list[Crossing]:
        """Count a model call that has ended, and return the levels that it crossed."""
        if not self._books:
            return []
        with self._guard:
            self.calls += 1
            now = self._clock()
            covering = [book for book in self._books if book.budget.covers(scope, usage.model)]
            return [crossing for book in covering for crossing in book.add(usage, now)]

    def refusal(self, scope: Scope, model: str | None) -> BudgetExceededError | None:
        """Return why a call must not be made; None: it may be. A refusal is counted."""
        if not self.can_stop:
            return None
        with self._guard:
            now = self._clock()
            for book in self._books:
                budget = book.budget
                if (
                    budget.on_exceeded == "stop"
                    and budget.covers(scope, model)
                    and book.level(now) is Level.EXCEEDED
                ):
                    book.refused_calls += 1
                    return BudgetExceededError(
                        budget.name, book.spent(now), budget.limit, budget.unit
                    )
        return None

    def status(self) -> tuple[BudgetStatus, ...]:
        """Return how each stands, in the order they were given."""
        with self._guard:
            now = self._clock()
            return tuple(book.status(now) for book in self._books)


def _check(names: Sequence[str]) -> None:
    if len(names) > MOST:
        raise ConfigurationError(f"there may be {MOST} budgets, not {len(names)}")
    for place, name in enumerate(names, 1):
        if name in names[: place - 1]:
            raise ConfigurationError(
                f"budgets {names.index(name) + 1} and {place} have the same name: give one a name=…"
            )
