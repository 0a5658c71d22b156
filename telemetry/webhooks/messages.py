"""
The messages of webhooks: which events lead to one, and what it says.

A message has kinds, codes, figures and keyed hashes. No content, no name of a person, no id of
theirs: it goes to where nobody has promised to keep it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ..event.budget_event import BudgetEvent
from ..event.event import Event
from ..event.subject import SubjectKeys
from ..event.verdict_event import Outcome, VerdictEvent
from ..text import utc_text
from . import Kind

SINK: Final = "webhooks"
"""The sink's name, and so the key under which its subject hashes are made."""

_OF_OUTCOMES: Final[Mapping[Outcome, Kind]] = {Outcome.HOLD: "held", Outcome.STOP: "stopped"}
_INTEGRITY, _INTEGRITY_GATE = "mnemoscope.integrity", "IntegrityGate"
_CODE = re.compile(r"[\w.:/-]{1,64}", re.ASCII)


def kind_of(event: Event) -> Kind | None:
    """Return the kind of the message on *event*. None: there is none. Raises nothing."""
    for part in event.parts:
        if isinstance(part, VerdictEvent):
            # That somebody skips is a decision in the form of a verdict.
            is_gate = part.kind == _INTEGRITY_GATE and part.would is not None
            found = None if part.rule == "approvals" else _OF_OUTCOMES.get(part.outcome)
            return "integrity" if is_gate else found
        if isinstance(part, BudgetEvent):
            return "budget"
        # By name: a relay carries the part of another room as what it shows.
        if part.name == _INTEGRITY and part.measurements().keys() - {"unknown"}:
            return "integrity"
    return "tripwire" if event.foreign_hits else None


def message_id(event: Event) -> str:
    """Return the id of the message on *event*: the same whenever it is sent."""
    return f"msg_{event.event_id}"


def message(event: Event, kind: Kind, keys: SubjectKeys, console: str | None) -> dict[str, Any]:
    """Return the message on *event*, of JSON types, with a link to *console*."""
    subject, run = event.subject, event.run
    data = {
        "event": event.event_id,
        # As `SubjectKeys.run_reference` gives it to whoever sends a webhook back to end the run.
        "run": run and keys.run_reference(event.tenant, run),
        "subject": subject and subject.hashed(SINK),
        **_details(event),
        "console": console,
    }
    known = {name: value for name, value in data.items() if value is not None}
    return {"type": kind, "timestamp": utc_text(event.started_ns // 1_000), "data": known}


def _details(event: Event) -> dict[str, Any]:
    verdict, budget = event.part(VerdictEvent), event.part(BudgetEvent)
    if verdict is not None:
        approval = verdict.evidence.get("approval")
        # Whoever decides may read this first, and is to decide before the verdict is shown.
        is_blind = bool(verdict.evidence.get("is_blind"))
        return {
            "rule": verdict.rule,
            "point": verdict.point.value,
            "reason": "blind" if is_blind else _code(verdict.reason),
            "approval": approval and _code(approval),
            "figures": {} if is_blind else _figures(verdict.evidence),
        }
    if budget is not None:
        figures = {"spent": budget.spent, "limit": budget.limit, "period_s": budget.period_s}
        figures |= {"burn_per_hour": budget.burn_per_hour}
        level = budget.level.value
        return {"budget": budget.budget, "level": level, "unit": budget.unit, "figures": figures}
    named = next((each for each in event.parts if each.name == _INTEGRITY), None)
    figures = dict(named.measurements()) if named is not None else {}
    figures |= {"foreign_hits": event.foreign_hits} if event.foreign_hits else {}
    return {"store": event.store, "operation": event.operation, "figures": figures}


def _code(value: Any) -> str:
    """Return a code. A rule of the user's own may give a sentence for one, which stays here."""
    return value if isinstance(value, str) and _CODE.fullmatch(value) else "other"


def _figures(evidence: Mapping[str, Any]) -> dict[str, float]:
    return {name: of for name, of in evidence.items() if isinstance(of, (int, float))}


_TITLES: Final[Mapping[Kind, str]] = {
    "held": "Waits for a human",
    "stopped": "A run was stopped",
    "budget": "A budget went past a level",
    "tripwire": "A store returned records of somebody else's",
    "integrity": "What was read is not what was written",
}


def sentence(message: Mapping[str, Any]) -> str:
    """Return *message* as one line for people, as Slack's ``text`` has it."""
    data = dict(message["data"])
    figures, console = data.pop("figures"), data.pop("console", None)
    said = ", ".join(f"{name} {value}" for name, value in (data | figures).items())
    text = f"{_TITLES[message['type']]}: {said}" + (f". {console}" if console else "")
    # Else the name of a rule could mention a channel.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
