"""What may be spent in a period, and on what: a budget, as it is written down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, Literal

from ..telemetry.crossing import Level, Unit
from ..telemetry.model_names import names_of
from .context import Scope
from .errors import ConfigurationError

Per = Literal["minute", "hour", "day", "week", "month"]

PERIODS_S: Final[dict[Per, float]] = {
    "minute": 60.0,
    "hour": 3_600.0,
    "day": 86_400.0,
    "week": 7 * 86_400.0,
    "month": 30 * 86_400.0,
}
"""A month has 30 days: the window slides, so that no budget is new on the first."""

_NAME: Final = re.compile(r"[\w./:-][\w ./:-]{0,79}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """
    What may be spent in a period.

    What it covers is narrowed by *feature*, *customer*, *tenant* and *model*; with none of them it
    covers every model call that is counted.

    Attributes:
        usd: What may be spent. Calls whose model has no price are not counted, and said to be.
        tokens: What may be spent, input and output, in place of `usd`.
        per: The period, which slides: an hour is the last 60 minutes.
        feature: Path of a feature: ``reply`` covers ``reply/draft`` as well.
        customer: Of one customer. Shown nowhere.
        tenant: Of one tenant. Shown nowhere.
        model: Of one model, its snapshots included.
        expected_at: Share of the budget, in (0, 1], that is usual. None: no such level.
        alert_at: Share of it at which somebody should look.
        on_exceeded: ``alert``: tell, and go on. ``stop``: raise `BudgetExceededError` before the
            next model call that it covers, unless a memory operation makes it: that is counted.
        name: What it is called in events and metrics. Default: feature or model, and period.

    Raises:
        ConfigurationError: It makes no sense.
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
    name: str = ""

    def __post_init__(self) -> None:
        if (self.usd is None) == (self.tokens is None):
            raise ConfigurationError("a budget has usd=… or tokens=…, one of the two")
        if not (isfinite(self.limit) and self.limit > 0):
            raise ConfigurationError(f"a budget is more than 0 {self.unit}, not {self.limit:g}")
        if self.per not in PERIODS_S:
            raise ConfigurationError(f"a budget is per {', '.join(PERIODS_S)}")
        if self.on_exceeded not in {"alert", "stop"}:
            raise ConfigurationError("on_exceeded is alert or stop")
        for level in ("expected_at", "alert_at"):
            share = getattr(self, level)
            if share is not None and not 0 < share <= 1:
                raise ConfigurationError(f"{level} is a share of the budget, in (0, 1]")
        if not self.name:
            object.__setattr__(self, "name", f"{self._covered()} per {self.per}")
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                "the name of a budget is up to 80 letters, digits, spaces and . / : - _"
            )

    def _covered(self) -> str:
        # Never who it is: a name is a label.
        if self.feature or self.model:
            return re.sub(r"[^\w ./:-]", "-", (self.feature or self.model or ""))[:60]
        if self.customer:
            return "customer"
        return "tenant" if self.tenant else "all"

    @property
    def unit(self) -> Unit:
        """What it counts."""
        return "tokens" if self.usd is None else "usd"

    @property
    def limit(self) -> float:
        """What may be spent in a period."""
        return float(self.tokens or 0) if self.usd is None else self.usd

    @property
    def period_s(self) -> float:
        """Length of a period, seconds."""
        return PERIODS_S[self.per]

    def covers(self, scope: Scope, model: str | None) -> bool:
        """Return whether a call of *model* for *scope* counts; None: the model is not known."""
        if self.customer is not None and scope.customer != self.customer:
            return False
        if self.tenant is not None and scope.tenant != self.tenant:
            return False
        if self.feature is not None and not _is_below(scope.feature, self.feature):
            return False
        return self.model is None or (model is not None and self.model.lower() in names_of(model))

    def levels(self) -> Iterator[tuple[Level, float]]:
        """Yield each level that it has and the share at which it begins, lowest first."""
        if self.expected_at is not None:
            yield Level.EXPECTED, self.expected_at
        yield Level.ALERT, self.alert_at
        yield Level.EXCEEDED, 1.0


def _is_below(path: str | None, prefix: str) -> bool:
    return path is not None and (path == prefix or path.startswith(f"{prefix}/"))
