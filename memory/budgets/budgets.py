"""
The spend on each budget of a scope, and the calls that are refused or held back for it.

Spend is counted in this process, from its start, over a sliding window; each of several processes
has the whole budget. Memory is constant: 61 numbers a budget, whatever the number of calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

import msgspec

from ...telemetry.event.budget_event import BudgetEvent
from ...telemetry.event.kinds import Level
from ...telemetry.event.usage import Usage
from ...telemetry.event.verdict_event import Point, VerdictEvent
from ...telemetry.process.fork import reset_after_fork
from ...telemetry.process.fork_lock import ForkLock
from ..context import Scope
from ..errors import BudgetExceededError, ConfigurationError
from ..limits.sliding_window import SlidingSum
from ..run_observers import GraphRun, UndecidedError
from .budget import Budget
from .under_way import Reservation, UnderWay, wake

if TYPE_CHECKING:
    from ..errors import RuleError
    from ..rules.rule import Facts, Rule
    from ..rules.rulebook import Rulebook
    from .escalated import EscalatedBudget

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


class Asking(msgspec.Struct, frozen=True):
    """
    A model call that asks whether it may begin.

    Attributes:
        around: Calls that cannot end while it waits, since it is part of them.
        since: When it asked first, monotonic seconds by the clock of the budgets.
        can_wait: Whether its thread may be held.
    """

    call: object
    around: Collection[object]
    since: float
    can_wait: bool


class _BudgetSpend:
    """The spend on one budget. Not thread-safe."""

    def __init__(self, budget: Budget, now: float) -> None:
        self.budget = budget
        self._scale = _PICO if budget.unit == "usd" else 1
        self.rule = _rule_of(budget)
        self._levels = [
            (level, round(share * budget.limit * self._scale)) for level, share in budget.levels()
        ]
        self.reset(now)

    def reset(self, now: float) -> None:
        """Reset the spend to zero."""
        self._sum = SlidingSum(self.budget.period_s, now)
        self.under_way = UnderWay()
        self._crossed_at: dict[Level, float] = {}
        self.crossings = {level: 0 for level, _amount in self._levels}
        self.calls = self.unpriced_calls = self.refused_calls = 0
        self.escalated: EscalatedBudget | None = None

    def limit(self, now: float) -> float:
        """Return what may be spent now: the budget, and what an escalation has granted."""
        escalated = self.escalated
        return self.budget.limit + (0.0 if escalated is None else escalated.granted(now))

    def add(self, usage: Usage, now: float, *, failed: bool) -> list[BudgetEvent]:
        """Count a call and return the levels that it crossed, each once in a period."""
        self.calls += 1
        amount = self._amount(usage)
        if not failed and (usage.input_tokens or usage.output_tokens or not usage.reported):
            self.under_way.learn(max(0, amount or 0))  # else it broke off, or a cache answered
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

    def refusal(self, now: float) -> BudgetExceededError | None:
        """Return the error that refuses a call now, if the budget stops it. None: some is left."""
        return self._decided(now, 0.0)

    def _decided(self, now: float, expected: float) -> BudgetExceededError | None:
        """Return the error that refuses a call, if the rule says so of what is left."""
        if self.rule is None:
            return None
        facts = self._facts(now, expected)
        if self.rule.decide(facts).is_plain:
            return None
        error = self._error(now, expected)
        error.facts = facts
        return error

    def _facts(self, now: float, expected: float) -> Facts:
        from ..rules.rule import Facts  # noqa: PLC0415 - only for budgets that stop calls

        limit = round(self.limit(now) * self._scale)
        amounts = {"spent": self._sum.total(now), "expected": ceil(expected), "limit": limit}
        return Facts(Point.MODEL, known=amounts)

    def _error(self, now: float, expected: float) -> BudgetExceededError:
        budget, expected = self.budget, expected / self._scale
        return BudgetExceededError(
            budget.name, self.spent(now), self.limit(now), budget.unit, expected
        )

    def held_back(
        self, around: Collection[object], since: float, now: float
    ) -> BudgetExceededError | UndecidedError | None:
        """
        Return the refusal or wait of a call that the calls under way may leave no budget for.

        Where it has waited long enough and nobody knows what calls use, it may be made.
        """
        calls, wait_s = self.under_way, self.budget.wait_s
        if not wait_s or not calls.is_any_but(around, now):
            return None
        known, expected = calls.is_expectation_known, calls.expected()
        refusal = self._decided(now, expected) if known else None
        if known and refusal is None:
            return None
        if (left_s := since + wait_s - now) > 0:
            return UndecidedError(calls.wait(), left_s)
        return refusal

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
        clock: Monotonic seconds.

    Attributes:
        clock: Monotonic seconds.
        calls: Model calls counted, whether a budget covers them or not.
        can_stop: Whether any budget has ``on_exceeded="stop"``.
        can_escalate: Whether any has a function that is asked before that.
        is_closed: Whether their scope has closed, which then counts nothing.

    Raises:
        ConfigurationError: Two have the same name, or there are too many.
    """

    def __init__(
        self, budgets: Iterable[Budget] = (), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.clock = clock
        self._spends = [_BudgetSpend(each, clock()) for each in budgets]
        self._guard = ForkLock()
        self.calls = 0
        self.can_stop = any(spend.budget.on_exceeded == "stop" for spend in self._spends)
        self.can_escalate = any(spend.budget.escalate is not None for spend in self._spends)
        self.is_closed = False
        _check([spend.budget.name for spend in self._spends])
        reset_after_fork(self)

    def forked(self) -> None:
        """Start with nothing spent in a forked child: the parent counts the earlier spend."""
        self.calls = 0
        for spend in self._spends:
            spend.reset(self.clock())

    def __len__(self) -> int:
        """Return the number of budgets."""
        return len(self._spends)

    def add(self, scope: Scope, usage: Usage, *, failed: bool = False) -> list[BudgetEvent]:
        """Count a finished model call and return the levels that it crossed."""
        with self._guard:
            self.calls += 1
            now = self.clock()
            covering = [spend for spend in self._spends if spend.budget.covers(scope, usage.model)]
            return [
                crossing for spend in covering for crossing in spend.add(usage, now, failed=failed)
            ]

    def admit(
        self, scope: Scope, model: str | None, asking: Asking
    ) -> Reservation | BudgetExceededError | UndecidedError | None:
        """
        Decide on a call that is to begin.

        Args:
            scope: Whom it is for.
            model: Which it asks. None: unknown.
            asking: The rest that is known of it.

        Returns:
            What is kept back for it until it has ended, None if no budget that may stop it covers
            it, the error that refuses it, or what it has to wait for before it asks again.
        """
        with self._guard:
            now, covering = self.clock(), self._stopping(scope, model)
            if (refusal := _refusal(covering, now)) is not None:
                return refusal
            for spend in covering if asking.can_wait else ():
                if (found := spend.held_back(asking.around, asking.since, now)) is not None:
                    return found
            if not covering:
                return None
            reservation = Reservation(asking.call, now, self._release)
            for spend in covering:
                spend.under_way.add(reservation)
            return reservation

    def _stopping(self, scope: Scope, model: str | None) -> list[_BudgetSpend]:
        if not self.can_stop or self.is_closed:
            return []
        spends = [each for each in self._spends if each.budget.on_exceeded == "stop"]
        return [each for each in spends if each.budget.covers(scope, model)]

    def escalated(
        self, refusal: BudgetExceededError, book: Rulebook, scope: Scope, graph: GraphRun | None
    ) -> BudgetExceededError | RuleError | UndecidedError | None:
        """
        Return what a call gets in place of *refusal*, whose budget may have a function asked.

        Args:
            refusal: The refusal.
            book: Has the facts of runs.
            scope: Whom the call is for.
            graph: The graph that it is part of.
        """
        spend = next(each for each in self._spends if each.budget.name == refusal.budget)
        if spend.rule is None or spend.budget.escalate is None:
            return refusal
        from .escalated import EscalatedBudget  # noqa: PLC0415 - few budgets escalate

        now = self.clock()
        with self._guard:
            escalated = spend.escalated
            if escalated is None or escalated.is_over(now):
                escalated = EscalatedBudget(spend.budget, spend.rule, book, now)
                spend.escalated = escalated
        return escalated.instead_of(refusal, scope, graph)

    def note_refused(self, refusal: BudgetExceededError) -> VerdictEvent | None:
        """Count a call that was not made because of *refusal*, and return the verdict's event."""
        rule: Rule | None = None
        with self._guard:
            for spend in self._spends:
                if spend.budget.name == refusal.budget:
                    spend.refused_calls += 1
                    rule = spend.rule
        if rule is None or refusal.facts is None:
            return None
        from ..rules.rule import verdict_event  # noqa: PLC0415 - as above

        return verdict_event(rule, rule.decide(refusal.facts), refusal.facts)

    def _release(self, reservation: Reservation) -> None:
        with self._guard:
            waiting = [
                each for spend in self._spends for each in spend.under_way.remove(reservation)
            ]
        wake(waiting)

    def close(self) -> None:
        """Refuse and hold back no call from now on: the scope has closed, and counts none."""
        self.is_closed = True
        with self._guard:
            waiting = [each for spend in self._spends for each in spend.under_way.all_waiting()]
        wake(waiting)

    def status(self) -> tuple[BudgetStatus, ...]:
        """Return the state of each budget, in the given order."""
        with self._guard:
            now = self.clock()
            return tuple(spend.status(now) for spend in self._spends)


def _rule_of(budget: Budget) -> Rule | None:
    """Return the rule that refuses calls for a budget. None: it stops none."""
    if budget.on_exceeded != "stop":
        return None
    from ..rules.spending import Spending  # noqa: PLC0415 - only for budgets that stop calls

    return Spending(
        name=budget.name,
        unit=budget.unit,
        escalate=budget.escalate,
        escalations=budget.escalations,
        escalate_within_s=budget.escalate_within_s,
    )


def _refusal(covering: Iterable[_BudgetSpend], now: float) -> BudgetExceededError | None:
    refusals = (spend.refusal(now) for spend in covering)
    return next((each for each in refusals if each is not None), None)


def _check(names: Sequence[str]) -> None:
    if len(names) > MAX_BUDGETS:
        raise ConfigurationError(f"a scope may have {MAX_BUDGETS} budgets, not {len(names)}")
    for place, name in enumerate(names, 1):
        if name in names[: place - 1]:
            raise ConfigurationError(
                f"budgets {names.index(name) + 1} and {place} have the same name: give one a name=…"
            )
