"""
How far humans agree with a gate, and whether it may go on without them.

A gate may where humans agreed with it, and must not any longer where they do not. What that follows
from is counted in the audit trail; each change is a sealed verdict that can be made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...telemetry.event.verdict_event import Point
from .decisions import recorded_event
from .rule import ALLOW, Facts, StandaloneRule, Verdict

if TYPE_CHECKING:
    from .held_writes import Decisions

LEAST_DECIDED: Final = 50
"""Decisions of humans on verdicts in shadow without which a gate is never left alone."""

LEAST_AGREED: Final = 0.8
"""Share of them that have to agree with the gate."""

WINDOW: Final = 100
"""Latest decisions that count."""

SHADOW: Final = "shadow"
AUTO: Final = "auto"


class GateAgreement(StandaloneRule):
    """The rule that changes the mode of a gate by what humans have decided."""

    name = "approvals"

    def decide(self, facts: Facts, /) -> Verdict:
        """Return the change, where there is one."""
        known = facts.known
        figures = (known["decided"], known["agreed"], known["rejected_passes"])
        decided, agreed, rejected = (each if isinstance(each, int) else 0 for each in figures)
        share = agreed / decided if decided else 0.0
        if known["is_reset"]:
            mode, change = SHADOW, "reset"
        elif known["mode"] == AUTO and decided and share < LEAST_AGREED:
            mode, change = SHADOW, "disagreed"
        elif (
            known["mode"] == SHADOW
            and decided >= LEAST_DECIDED
            and share >= LEAST_AGREED
            and not rejected
        ):
            mode, change = AUTO, "agreed"
        else:
            return ALLOW
        evidence = {"gate": known["gate"], "mode": mode, "change": change, "agreement": share}
        return Verdict(reason=change, evidence=evidence)


def change_mode(trail: Decisions, gate: str, *, is_reset: bool = False) -> str:
    """
    Have the mode of *gate* follow what humans have decided, and return it.

    Args:
        trail: The audit trail.
        gate: Its name.
        is_reset: Begin to count anew, in shadow.

    Raises:
        AuditError: The trail cannot be read or written.
    """
    found = trail.agreement(gate, WINDOW)
    rule = GateAgreement()
    facts = Facts(Point.NODE, known={"gate": gate, "is_reset": is_reset, **found})
    verdict = rule.decide(facts)
    if verdict.is_plain:
        return str(found["mode"])
    trail.record(recorded_event(rule, verdict, facts, f"mode\n{gate}\n{found['changes']}"))
    return str(verdict.evidence["mode"])
