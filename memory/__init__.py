"""
The chokepoint in front of an agent's memory, and the front door to it.

``import mnemoscope.memory`` imports no store and no sink; `configure` and the wrappers do.
"""

from __future__ import annotations

from .budget import Budget
from .configuring import configure, observe
from .context import Scope, context, feature
from .errors import (
    BudgetExceeded,
    BudgetExceededError,
    ConfigurationError,
    DeadlineExceededError,
    MnemoscopeError,
    RedactionError,
    ScopeError,
    StoreUnavailableError,
    UnsupportedClientError,
)
from .front_door import Mnemoscope
from .health import Check, Health, State
from .policy import BreakerPolicy, Policy

__all__ = [
    "BreakerPolicy",
    "Budget",
    "BudgetExceeded",
    "BudgetExceededError",
    "Check",
    "ConfigurationError",
    "DeadlineExceededError",
    "Health",
    "Mnemoscope",
    "MnemoscopeError",
    "Policy",
    "RedactionError",
    "Scope",
    "ScopeError",
    "State",
    "StoreUnavailableError",
    "UnsupportedClientError",
    "configure",
    "context",
    "feature",
    "observe",
]
