"""The part of an event that reports a budget past one of its levels."""

from __future__ import annotations

from typing import Any, ClassVar

from .format import in_unit
from .kinds import Level, Unit
from .part import EventPart

_SAID = {
    Level.WITHIN: "is within its levels",
    Level.EXPECTED: "has spent more than expected",
    Level.ALERT: "is past its alert level",
    Level.EXCEEDED: "is spent",
}


class BudgetEvent(EventPart, tag="budget", frozen=True, kw_only=True):
    """
    A budget that went past one of its levels. Holds nothing personal.

    Attributes:
        budget: The budget's name. A capped label.
        unit: What `spent`, `limit` and `burn_per_hour` count.
        spent: In the period that ends now.
        limit: What may be spent in a period.
        period_s: Length of a period, seconds.
        burn_per_hour: What an hour would cost at the pace of the last tenth of a period.
    """

    is_notice: ClassVar[bool] = True

    budget: str
    level: Level
    unit: Unit
    spent: float
    limit: float
    period_s: float
    burn_per_hour: float

    def sentence(self) -> str:
        """Return a one-line description for people."""
        spent, limit, burn = (
            in_unit(each, self.unit) for each in (self.spent, self.limit, self.burn_per_hour)
        )
        return (
            f"budget {self.budget} {_SAID[self.level]}: {spent} of {limit}, {burn} an hour at this "
            "pace"
        )

    def fields(self) -> dict[str, Any]:
        """Return the fields by the names that log records and runs use."""
        return {
            "budget": self.budget,
            "budget_level": self.level.value,
            "budget_unit": self.unit,
            "budget_spent": self.spent,
            "budget_limit": self.limit,
            "budget_period_s": self.period_s,
            "budget_burn_per_hour": self.burn_per_hour,
        }

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of a span: no convention has a word for budgets yet."""
        return {
            "mnemoscope.budget.name": self.budget,
            "mnemoscope.budget.level": self.level.value,
            "mnemoscope.budget.unit": self.unit,
            "mnemoscope.budget.spent": self.spent,
            "mnemoscope.budget.limit": self.limit,
            "mnemoscope.budget.period_s": self.period_s,
            "mnemoscope.budget.burn_per_hour": self.burn_per_hour,
        }

    def sealed(self) -> dict[str, Any]:
        """Return all of it."""
        return self.fields()
