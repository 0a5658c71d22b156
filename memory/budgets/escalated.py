"""The escalation of a budget: a function is asked before the first call of a period is refused."""

from __future__ import annotations

from ...telemetry.event.verdict_event import Outcome, Point
from ..context import Scope
from ..errors import BudgetExceededError, RuleError, StoppedError
from ..rules.escalation import granted
from ..rules.held_writes import Judged
from ..rules.rule import Facts, Rule, Verdict
from ..rules.rulebook import Rulebook
from ..rules.run_facts import RunFacts
from ..run_observers import GraphRun, UndecidedError
from .budget import Budget


class EscalatedBudget:
    """
    The escalations of one budget in one period. Thread-safe.

    Args:
        budget: The budget.
        rule: The rule that refuses calls for it.
        book: Has the facts of runs.
        now: When the period began, monotonic seconds.
    """

    def __init__(self, budget: Budget, rule: Rule, book: Rulebook, now: float) -> None:
        self._budget, self._rule, self._book, self._began = budget, rule, book, now
        # What is granted is kept as a run's is: the budget is asked about as if it were one.
        self._facts = RunFacts(now)

    def is_over(self, now: float) -> bool:
        """Return whether the period has passed, and with it what was granted."""
        return now - self._began >= self._budget.period_s

    def granted(self, now: float) -> float:
        """Return what may be spent above the budget."""
        return 0.0 if self.is_over(now) else granted(self._facts.known, self._budget.unit)

    def instead_of(
        self, refusal: BudgetExceededError, scope: Scope, graph: GraphRun | None
    ) -> BudgetExceededError | RuleError | UndecidedError | None:
        """Return what a call gets in place of *refusal*. None: it asks again, and has more."""
        book, facts = self._book, self._facts
        with book.runs.guard:
            if facts.escalation is None:
                self._begin(refusal)
            if (asked := facts.escalation) is None:
                if facts.returns_best and (best := book.run_facts(scope, graph).best) is not None:
                    refusal.best = best[1]
                return refusal
            found = book.escalations.settled(facts, asked, scope)
            # As a run it would end for good. A budget refuses until the period is over.
            facts.stopped = None
            is_end = isinstance(found, StoppedError)
            return self.instead_of(refusal, scope, graph) if is_end else found

    def _begin(self, refusal: BudgetExceededError) -> None:
        amounts = {"spent": refusal.spent, "expected": refusal.expected, "limit": refusal.limit}
        is_usd = refusal.unit == "usd"
        seen = Facts(Point.MODEL, cost_usd=refusal.spent if is_usd else 0.0, known=amounts)
        stop = Judged(self._rule, Verdict(Outcome.STOP, "budget_spent"), seen)
        self._book.escalations.begun(stop, self._facts, self._approval)

    def _approval(self, count: int) -> str:
        return self._book.hashes.of_json(["budget", self._budget.name, count])
