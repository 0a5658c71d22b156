"""
How far humans agree with a gate, and whether it may go on without them.

A gate may where humans agreed with it, and must not any longer where they do not; at first with a
tenth of what passes, then with more. What that follows from is counted in the audit trail, for each
version of a gate anew. Each change is a sealed verdict that can be made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ...telemetry.event.verdict_event import Point
from .decisions import recorded_event
from .rule import ALLOW, Fact, Facts, StandaloneRule, Verdict

if TYPE_CHECKING:
    from .held_writes import Decisions

LEAST_DECIDED: Final = 50
"""Decisions of humans that each stage needs, made since the stage before it began."""

LEAST_AGREED: Final = 0.8
"""Share of them that have to agree with the gate."""

LEAST_BLIND: Final = 10
"""Blind decisions from which their own share may put a gate back in shadow."""

WINDOW: Final = 100
"""Latest decisions that count."""

STAGES: Final = (10, 25, 50, 100)
"""Percent of its passes that a gate goes on with by itself, one stage after the other."""

SHADOW: Final = "shadow"
AUTO: Final = "auto"


class GateAgreement(StandaloneRule):
    """The rule that changes the mode and the stage of a gate by what humans have decided."""

    name = "approvals"

    def decide(self, facts: Facts, /) -> Verdict:
        """Return the change, where there is one."""
        known = facts.known
        decided, share = _agreed(known, "decided", "agreed")
        blind, blind_share = _agreed(known, "blind_decided", "blind_agreed")
        # Facts that were sealed before there were stages have one stage, and no blind decisions.
        own, own_share = _agreed(known, "stage_decided", "stage_agreed")
        if "stage_decided" not in known:
            own, own_share = decided, share
        is_auto, rejected = known["mode"] == AUTO, bool(known["rejected_passes"])
        stage = _int(known.get("stage", STAGES[-1] if is_auto else 0))
        wider = next((each for each in STAGES if each > stage), None)
        if known["is_reset"]:
            stage, change = 0, "reset"
        elif is_auto and (
            (decided and share < LEAST_AGREED)
            or (blind >= LEAST_BLIND and blind_share < LEAST_AGREED)
        ):
            stage, change = 0, "disagreed"
        elif is_auto and rejected:
            stage, change = 0, "rejected"
        elif (
            wider is not None
            and own >= LEAST_DECIDED
            and min(own_share, share) >= LEAST_AGREED
            and (not blind or blind_share >= LEAST_AGREED)
            and not rejected
        ):
            stage, change = wider, "widened" if is_auto else "agreed"
        else:
            return ALLOW
        mode = AUTO if stage else SHADOW
        evidence: dict[str, Fact] = {
            "gate": known["gate"],
            "mode": mode,
            "change": change,
            "agreement": share,
        }
        if "version" in known:
            evidence |= {"version": known["version"], "stage": stage}
        return Verdict(reason=change, evidence=evidence)


def change_mode(trail: Decisions, gate: str, version: str, *, is_reset: bool = False) -> str:
    """
    Have the mode of *gate* follow what humans have decided, and return it.

    Args:
        trail: The audit trail.
        gate: Its name.
        version: What it judges by; see `Approval.version`. Empty: it is not known, so that nothing
            counts, and the gate is in shadow.
        is_reset: Begin to count anew, in shadow.

    Raises:
        AuditError: The trail cannot be read or written.
    """
    if not version:
        return SHADOW
    found = trail.agreement(gate, version, WINDOW)
    rule = GateAgreement()
    about: dict[str, Fact] = {"gate": gate, "version": version, "is_reset": is_reset}
    facts = Facts(Point.NODE, known={**about, **found})
    verdict = rule.decide(facts)
    if verdict.is_plain:
        return str(found["mode"])
    once = f"mode\n{gate}\n{version}\n{found['changes']}"
    trail.record(recorded_event(rule, verdict, facts, once))
    return str(verdict.evidence["mode"])


def _agreed(known: Mapping[str, Fact], decided: str, agreed: str) -> tuple[int, float]:
    """Return the number of decisions, and the share of them that agrees. Of none: 0."""
    count = _int(known.get(decided))
    return count, _int(known.get(agreed)) / count if count else 0.0


def _int(fact: Fact) -> int:
    return fact if isinstance(fact, int) else 0
