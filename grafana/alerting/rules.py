"""All rules: what is rendered, installed, and shipped with the stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .objectives import Objectives
from .promql import Pace
from .rule import Group
from .rules_latency import latency
from .rules_memory import memory
from .rules_privacy import privacy
from .rules_sinks import sinks
from .rules_spend import spend


def groups(objectives: Objectives, pace: Pace | None = None) -> Sequence[Group]:
    """Return all rules, with the latency rules of *objectives*."""
    at = pace or Pace()
    return latency(at, objectives), memory(at), spend(at), privacy(at), sinks(at)


def rule_file(of: Sequence[Group], runbooks: str, pace: Pace | None = None) -> dict[str, Any]:
    """Return *of* as one file of Prometheus' rules."""
    at = pace or Pace()
    return {"groups": [group.document(runbooks, at) for group in of]}
