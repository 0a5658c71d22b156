"""Budgets as users configure them: an amount for a period, and the calls it covers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Final, Literal

from ...telemetry.event.kinds import Level, Unit
from ...telemetry.pricing.model_names import names_of
from ..context import Scope
from ..errors import ConfigurationError

if TYPE_CHECKING:
    from ..rules.escalation import Escalate

Per = Literal["minute", "hour", "day", "week", "month"]

PERIODS_S: Final[dict[Per, float]] = {
    "minute": 60.0,
    "hour": 3_600.0,
    "day": 86_400.0,
    "week": 7 * 86_400.0,
    "month": 30 * 86_400.0,
}
"""Lengths of the periods, seconds. They slide, so a month is any 30 days."""

MAX_WAIT_S: Final = 600.0
"""Most seconds that a budget may have calls wait for others."""

_NAME: Final = re.compile(r"[\w./:-][\w ./:-]{0,79}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """
    A limit of spend in a sliding period.

    It covers the model calls of its *feature*, *customer*, *tenant* and *model*; with none of them,
    all model calls that are counted.

    Attributes:
        usd: Limit in dollars. Calls whose model has no price are reported as unpriced.
        tokens: Limit in input and output tokens, instead of `usd`.
        per: The sliding period: an hour is the last 60 minutes.
        feature: Path of a feature: ``reply`` covers ``reply/draft`` as well.
        customer: One customer. Shown nowhere.
        tenant: One tenant. Shown nowhere.
        model: One model, including its snapshots.
        expected_at: Share of the budget, in (0, 1], that is normal. None: no such level.
        alert_at: Share of the budget, in (0, 1], that needs attention.
        on_exceeded: ``alert``: report it. ``stop``: also raise `BudgetExceededError` before the
            next covered model call, except inside a memory operation, which is counted only.
        wait_s: Most seconds that a call waits for those under way, where ``stop`` is said and they
            are expected to use up what is left. 0: it never waits, and calls made at once may
            exceed the budget together.
        escalate: Asked before the first call is refused: see `mnemoscope.memory.GoOn`. None: nobody
            is asked.
        escalations: How many times in a period.
        escalate_within_s: Seconds that it has. After them, or where it raises, the call is refused.
        name: Its name in events and metrics. Default: feature or model, and period.

    Raises:
        ConfigurationError: A value is invalid.
    """

    usd: float | None = None
    tokens: int | None = None
    per: Per = "hour"
    feature: str | None = None
    customer: str | None = field(default=None, repr=False)
    tenant: str | None = field(default=None, repr=False)
    model: str | None = None
    expected_at: float | None = None
    alert_at: float = 0.75
    on_exceeded: Literal["alert", "stop"] = "alert"
    wait_s: float = 30.0
    escalate: Escalate | None = field(default=None, repr=False)
    escalations: int = 1
    escalate_within_s: float = 30.0
    name: str = ""

    def __post_init__(self) -> None:
        if (self.usd is None) == (self.tokens is None):
            raise ConfigurationError("a budget needs either usd=… or tokens=…")
        if not (isfinite(self.limit) and self.limit > 0):
            raise ConfigurationError(
                f"a budget must be more than 0 {self.unit}, not {self.limit:g}"
            )
        if self.per not in PERIODS_S:
            raise ConfigurationError(f"per must be one of {', '.join(PERIODS_S)}")
        if self.on_exceeded not in {"alert", "stop"}:
            raise ConfigurationError("on_exceeded must be alert or stop")
        if not 0 <= self.wait_s <= MAX_WAIT_S:
            raise ConfigurationError(f"wait_s must be 0 to {MAX_WAIT_S:g} seconds")
        self._check_escalation()
        for level in ("expected_at", "alert_at"):
            share = getattr(self, level)
            if share is not None and not 0 < share <= 1:
                raise ConfigurationError(f"{level} must be a share of the budget, in (0, 1]")
        if not self.name:
            object.__setattr__(self, "name", f"{self._default_name()} per {self.per}")
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                "the name of a budget must be 1 to 80 letters, digits, spaces and . / : - _"
            )

    def _check_escalation(self) -> None:
        if self.escalate is not None and self.on_exceeded != "stop":
            raise ConfigurationError('escalate needs on_exceeded="stop"')
        if self.escalations < 1 or not 0 < self.escalate_within_s <= MAX_WAIT_S:
            raise ConfigurationError(
                f"escalations must be 1 or more, escalate_within_s at most {MAX_WAIT_S:g} seconds"
            )

    def _default_name(self) -> str:
        # Never the customer or tenant: the name is a metric label.
        if self.feature or self.model:
            return re.sub(r"[^\w ./:-]", "-", (self.feature or self.model or ""))[:60]
        if self.customer:
            return "customer"
        return "tenant" if self.tenant else "all"

    @property
    def unit(self) -> Unit:
        """Unit of the limit."""
        return "tokens" if self.usd is None else "usd"

    @property
    def limit(self) -> float:
        """Amount that may be spent in a period, in `unit`."""
        return float(self.tokens or 0) if self.usd is None else self.usd

    @property
    def period_s(self) -> float:
        """Length of a period, seconds."""
        return PERIODS_S[self.per]

    def covers(self, scope: Scope, model: str | None) -> bool:
        """Return whether a call of *model* (None: unknown) for *scope* counts."""
        if self.customer is not None and scope.customer != self.customer:
            return False
        if self.tenant is not None and scope.tenant != self.tenant:
            return False
        if self.feature is not None and not _is_below(scope.feature, self.feature):
            return False
        return self.model is None or (model is not None and self.model.lower() in names_of(model))

    def levels(self) -> Iterator[tuple[Level, float]]:
        """Yield each level and the share of the budget at which it begins, lowest first."""
        if self.expected_at is not None:
            yield Level.EXPECTED, self.expected_at
        yield Level.ALERT, self.alert_at
        yield Level.EXCEEDED, 1.0


def _is_below(path: str | None, prefix: str) -> bool:
    return path is not None and (path == prefix or path.startswith(f"{prefix}/"))
