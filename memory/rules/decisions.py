"""
A human's decision on what a rule held, as an event like that of a rule: sealed, and made again.

Who decided is the customer of that event: each sink knows them by a keyed hash of its own, and they
are exported and erased as customers are.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from typing import Final

from ...telemetry.event.event import VERDICT, Event, OperationClass, Redacted, Status
from ...telemetry.event.subject import Subject
from ...telemetry.event.trace_ref import TraceRef
from ...telemetry.event.verdict_event import Choice, Outcome, Point
from ..errors import ConfigurationError
from .rule import Fact, Facts, Rule, StandaloneRule, Verdict, verdict_event

OUTCOMES: Final = {
    Choice.APPROVE: Outcome.ALLOW,
    Choice.EDIT: Outcome.REFUSE,
    Choice.REJECT: Outcome.REFUSE,
    Choice.SKIP: Outcome.HOLD,
    Choice.USED: Outcome.ALLOW,
}
CODE = re.compile("[a-z0-9_.-]{1,64}")
_STORE = "rule"
_SHOWN = ("approval", "choice", "gate", "passed", "used", "version", "is_blind", "has_text")


class Decision(StandaloneRule):
    """The rule that stands in events of decisions: a decision is what its facts say."""

    name = "approvals"

    def decide(self, facts: Facts, /) -> Verdict:
        """Return what the human has said, by the facts."""
        known = facts.known
        choice = Choice(str(known["choice"]))
        # By what there is: earlier versions sealed facts without the last three.
        evidence = {name: known[name] for name in _SHOWN if name in known}
        return Verdict(OUTCOMES[choice], str(known["why"] or choice), evidence)


def decision_event(
    approval: str,
    choice: Choice,
    *,
    gate: str = "",
    version: str = "",
    passed: bool = False,
    is_blind: bool = False,
    why: str = "",
    used: int = 0,
    by: Subject | None = None,
    point: Point = Point.MEMORY,
    has_text: bool = False,
) -> Event:
    """
    Return the event of a decision. Of those on one approval the first is recorded, and no other.

    Args:
        approval: The id of what was held.
        choice: What was decided.
        gate: The rule that held it.
        version: What that gate judges by. Empty: unknown, so that the decision counts for none.
        passed: Whether the rule had let it pass, had it not been in shadow or drawn for a human.
        is_blind: Whether it was decided before the gate's verdict was shown.
        why: A code. Empty: none was given.
        used: How many times the same write has passed by an approval before.
        by: Who decided.
        point: Where it was held.
        has_text: Whether an `edited_event` is recorded with it.

    Raises:
        ConfigurationError: *why* is no code.
    """
    if why and not CODE.fullmatch(why):
        raise ConfigurationError("a reason is a code: up to 64 of a-z, 0-9, _, - and .")
    known: dict[str, Fact] = {
        "approval": approval,
        "choice": choice,
        "gate": gate,
        "version": version,
        "passed": int(passed),
        "is_blind": int(is_blind),
        "used": used,
        "why": why,
    }
    if has_text:
        known["has_text"] = 1
    facts, rule = Facts(point, known=known), Decision()
    kind = choice if choice in {Choice.USED, Choice.SKIP} else "decided"
    return recorded_event(rule, rule.decide(facts), facts, f"{kind}\n{approval}\n{used}", by)


def decided_by(approval: str, used: int) -> str:
    """Return the id of the writer of the one decision on an approval, used so many times before."""
    return _writer(f"decided\n{approval}\n{used}")


def edited_event(decision: Event, was: str, text: Redacted, tenant: str | None) -> Event:
    """
    Return the event of the text that a human has made of what was held, about nobody yet.

    Args:
        decision: The event of the decision, which it is recorded with.
        was: The text that it takes the place of, as the trail has it.
        text: The new one, redacted.
        tenant: Of the call that was held.
    """
    return Event(
        writer_id=decision.writer_id,
        writer_seq=2,
        started_ns=decision.started_ns,
        duration_s=0.0,
        operation="update_memory",
        op_class=OperationClass.MODEL,
        store=_STORE,
        method="edit",
        status=Status.OK,
        trace=decision.trace,
        tenant=tenant,
        nested=True,
        content=text.read_by(lambda value: {"text": value, "was": was}),
    )


def recorded_event(
    rule: Rule, verdict: Verdict, facts: Facts, once: str, by: Subject | None = None
) -> Event:
    """Return the event of a verdict that is recorded at once, and one time only for each *once*."""
    return Event(
        writer_id=_writer(once),
        writer_seq=1,
        started_ns=time.time_ns(),
        duration_s=0.0,
        operation=VERDICT,
        op_class=OperationClass.MODEL,
        store=_STORE,
        method=rule.name,
        status=Status.OK,
        trace=TraceRef(secrets.randbits(127) + 1, secrets.randbits(63) + 1),
        subject=by,
        parts=(verdict_event(rule, verdict, facts),),
    )


def _writer(once: str) -> str:
    return hashlib.sha256(once.encode()).hexdigest()[:16]
