"""The decision of a human on what a rule has left to them: one function, wherever they make it."""

from __future__ import annotations

from typing import NamedTuple

from ..audit.decisions import AuditedDecisions, Held, held
from ..audit.log import AuditLog
from ..memory.rules.agreement import change_mode
from ..memory.rules.decisions import decision_event, edited_event
from ..telemetry.event.event import Redacted
from ..telemetry.event.subject import Subject
from ..telemetry.event.verdict_event import Choice, Point

__all__ = ["Decided", "Edit", "decide", "held_of"]


class Decided(NamedTuple):
    """
    The decision that holds of an approval.

    Attributes:
        held: What was held, with the verdict, which may be shown now.
        choice: The decision; ``used`` where a write has passed by it. Skipped: ``skip``.
        is_first: Whether it was made just now. False: another was sealed before, and holds.
        mode: The mode that the gate is in, after it.
    """

    held: Held
    choice: Choice
    is_first: bool
    mode: str


class Edit(NamedTuple):
    """
    What a human has made of a text that was held.

    Attributes:
        was: The text, as the trail has it.
        text: The new one, redacted.
        uid: Whose it is, as the trail has them.
        tenant: Of the call that was held.
    """

    was: str
    text: Redacted
    uid: str
    tenant: str | None


def held_of(log: AuditLog, approval: str) -> Held | None:
    """
    Return what was left to humans under the id *approval*. None: there is no such approval.

    Raises:
        AuditError: The trail cannot be read.
    """
    with log.verdicts.begun() as snapshot:
        return None if snapshot is None else held(snapshot).get(approval)


def decide(
    log: AuditLog,
    approval: str,
    choice: str,
    *,
    by: str,
    why: str = "",
    edit: Edit | None = None,
) -> Decided | None:
    """
    Seal a human's decision, and return the one that holds: of all on an approval, the first.

    Two processes that decide at once get one answer. A process that is killed leaves the decision
    or nothing, and whoever decides next has the gate's mode follow it.

    Args:
        log: The audit trail.
        approval: The id of what was held.
        choice: The decision: ``approve``, ``edit``, ``reject`` or ``skip``, which is none.
        by: Who decides. Kept as customers are.
        why: A short code.
        edit: The text with which it is written, or goes on, with the choice ``edit``.

    Returns:
        The decision that holds. None: there is no such approval.

    Raises:
        ConfigurationError: *why* is no code.
        ValueError: *choice* is none of these.
        AuditError: The trail cannot be read or written. Whether it is decided is not known: it is
            safe to decide again.
    """
    decision, found = Choice(choice), held_of(log, approval)
    if found is None:
        return None
    trail = AuditedDecisions(log)
    event = decision_event(
        approval,
        decision,
        gate=found.gate,
        version=found.version,
        passed=found.passed,
        is_blind=found.is_blind,
        why=why,
        used=found.standing.used,
        by=Subject(by, tenant=None, keys=log.ring.current),
        point=Point(found.point),
        has_text=edit is not None,
    )
    edited = edit and edited_event(event, edit.was, edit.text, edit.tenant)
    recorded = found.waits and trail.record(event, edited, edit.uid if edit else "")
    is_first = recorded or (found.waits and decision is Choice.SKIP)
    if not is_first:
        decision = Choice(trail.standing(approval).decision or Choice.USED)
    # Also after another's decision: whoever made it may have been killed before this.
    return Decided(found, decision, is_first, change_mode(trail, found.gate, found.version))
