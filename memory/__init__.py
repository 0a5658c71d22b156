"""
The chokepoint in front of an agent's memory, and the front door to it.

``import mnemoscope.memory`` imports no store and no sink; `configure` and the wrappers do.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .context import Scope, context, feature
from .default_scope import configure, observe
from .errors import (
    AssemblyError,
    AuditUnavailableError,
    BudgetExceeded,
    BudgetExceededError,
    ConfigurationError,
    ContentTooLargeError,
    DeadlineExceededError,
    HandoffError,
    HeldError,
    IntegrityError,
    KeyMismatchError,
    MnemoscopeError,
    RedactionError,
    RedactionTimeoutError,
    RefusedError,
    RuleError,
    ScopeError,
    Stopped,
    StoppedError,
    StoreUnavailableError,
    UncertainErasureError,
    UnsupportedClientError,
    VaultError,
)
from .health.model import Check, Health, State
from .limits.policy import BreakerPolicy, Policy
from .scope import Mnemoscope, open_audit, quiet_clients

if TYPE_CHECKING:
    from ..telemetry.event.verdict_event import Outcome, Point
    from .assemble.assembly import Assembly, BlockReceipt, LeftOut, estimate_tokens
    from .assemble.block import Block, PromptItem, Tier, clean_input
    from .budgets.budget import Budget
    from .budgets.budgets import BudgetStatus
    from .handoff.handoff import Handoff
    from .matches.match import RedactionCallback, RedactionMatch
    from .rules.approval import Approval, Draft, Score
    from .rules.decision_judge import DecisionJudge
    from .rules.envelopes import Mode, Phase
    from .rules.escalation import RETURN_BEST, AskHuman, GoOn, Stop
    from .rules.memory_labels import Trust
    from .rules.origin import Origin
    from .rules.phases import Phases
    from .rules.roles import Role, Roles, granted
    from .rules.rule import Action, Facts, Fails, Rule, Verdict
    from .rules.stopping import Stopping
    from .settings import Settings, load_settings

__all__ = [
    "RETURN_BEST",
    "Action",
    "Approval",
    "AskHuman",
    "Assembly",
    "AssemblyError",
    "AuditUnavailableError",
    "Block",
    "BlockReceipt",
    "BreakerPolicy",
    "Budget",
    "BudgetExceeded",
    "BudgetExceededError",
    "BudgetStatus",
    "Check",
    "ConfigurationError",
    "ContentTooLargeError",
    "DeadlineExceededError",
    "DecisionJudge",
    "Draft",
    "Facts",
    "Fails",
    "GoOn",
    "Handoff",
    "HandoffError",
    "Health",
    "HeldError",
    "IntegrityError",
    "KeyMismatchError",
    "LeftOut",
    "Mnemoscope",
    "MnemoscopeError",
    "Mode",
    "Origin",
    "Outcome",
    "Phase",
    "Phases",
    "Point",
    "Policy",
    "PromptItem",
    "RedactionCallback",
    "RedactionError",
    "RedactionMatch",
    "RedactionTimeoutError",
    "RefusedError",
    "Role",
    "Roles",
    "Rule",
    "RuleError",
    "Scope",
    "ScopeError",
    "Score",
    "Settings",
    "State",
    "Stop",
    "Stopped",
    "StoppedError",
    "Stopping",
    "StoreUnavailableError",
    "Tier",
    "Trust",
    "UncertainErasureError",
    "UnsupportedClientError",
    "VaultError",
    "Verdict",
    "clean_input",
    "configure",
    "context",
    "estimate_tokens",
    "feature",
    "granted",
    "load_settings",
    "observe",
    "open_audit",
]

_MODULES = {
    **dict.fromkeys(("Approval", "Draft", "Score"), ".rules.approval"),
    **dict.fromkeys(
        ("Assembly", "BlockReceipt", "LeftOut", "estimate_tokens"), ".assemble.assembly"
    ),
    **dict.fromkeys(("Block", "PromptItem", "Tier", "clean_input"), ".assemble.block"),
    "Budget": ".budgets.budget",
    "BudgetStatus": ".budgets.budgets",
    "DecisionJudge": ".rules.decision_judge",
    "Handoff": ".handoff.handoff",
    **dict.fromkeys(("Action", "Facts", "Fails", "Rule", "Verdict"), ".rules.rule"),
    **dict.fromkeys(("Outcome", "Point"), "..telemetry.event.verdict_event"),
    **dict.fromkeys(("Mode", "Phase"), ".rules.envelopes"),
    **dict.fromkeys(("RETURN_BEST", "AskHuman", "GoOn", "Stop"), ".rules.escalation"),
    **dict.fromkeys(("RedactionCallback", "RedactionMatch"), ".matches.match"),
    "Origin": ".rules.origin",
    "Phases": ".rules.phases",
    "Trust": ".rules.memory_labels",
    **dict.fromkeys(("Role", "Roles", "granted"), ".rules.roles"),
    "Settings": ".settings",
    "Stopping": ".rules.stopping",
    "load_settings": ".settings",
}


quiet_clients()


def __getattr__(name: str) -> Any:
    """Import *name* when it is first used: most programs use few."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)
