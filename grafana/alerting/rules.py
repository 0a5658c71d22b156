"""All rules: what is rendered, installed, and shipped with the stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .objectives import Objectives
from .promql import RuleSpeed
from .rule import RuleGroup
from .rules_latency import latency
from .rules_memory import memory
from .rules_outcomes import outcomes
from .rules_privacy import privacy
from .rules_sinks import sinks
from .rules_spend import spend
from .rules_watchdog import watchdog


def groups(objectives: Objectives, pace: RuleSpeed | None = None) -> Sequence[RuleGroup]:
    """Return all rules, with the latency rules of *objectives*."""
    at = pace or RuleSpeed()
    return (
        latency(at, objectives),
        memory(at),
        spend(at),
        privacy(at),
        sinks(at),
        outcomes(at),
        watchdog(at),
    )


def rule_file(
    of: Sequence[RuleGroup], runbooks: str, pace: RuleSpeed | None = None
) -> dict[str, Any]:
    """Return *of* as one file of Prometheus' rules."""
    at = pace or RuleSpeed()
    return {"groups": [group.document(runbooks, at) for group in of]}
