"""The rule behind budgets that stop: nothing more is spent of a budget that has nothing left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...telemetry.event.verdict_event import Outcome
from .escalation import Escalate
from .rule import ALLOW, Facts, Fails, StandaloneRule, Verdict


@dataclass(frozen=True, kw_only=True)
class Spending(StandaloneRule):
    """
    Refuses a model call that a spent budget covers.

    `Budgets` asks it, with what was spent, what calls under way are expected to add, and the limit,
    in whole parts of the unit: trillionths of a dollar, or tokens.

    Attributes:
        unit: ``usd`` or ``tokens``.
        escalate: Of the budget, as the next two are: see `EscalatesStops`.
    """

    name: str
    unit: str
    escalate: Escalate | None = field(default=None, repr=False)
    escalations: int = 1
    escalate_within_s: float = 30.0
    fails = Fails.OPEN

    def settings(self) -> dict[str, Any]:
        """Return the settings of this rule, as the trail records them."""
        return {"name": self.name, "unit": self.unit}

    def decide(self, facts: Facts, /) -> Verdict:
        """Refuse where what was spent and is expected reaches the limit."""
        known = facts.known
        spent, expected, limit = known["spent"], known["expected"], known["limit"]
        if not (isinstance(spent, int) and isinstance(expected, int) and isinstance(limit, int)):
            raise TypeError("amounts must be whole numbers")
        if spent + expected < limit:
            return ALLOW
        return Verdict(Outcome.REFUSE, "budget_spent", {"spent": spent, "limit": limit})
