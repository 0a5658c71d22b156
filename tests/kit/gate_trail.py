"""Gates and what humans decide on them, as a trail has it: the names that tests of both use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from mnemoscope.audit.decisions import AuditedDecisions, held
from mnemoscope.memory import Approval
from mnemoscope.memory.rules import agreement as rule_of_modes
from mnemoscope.memory.rules.agreement import STAGES, GateAgreement, change_mode
from mnemoscope.memory.rules.decisions import Decision, decision_event
from mnemoscope.memory.rules.recheck import Answer, recheck
from mnemoscope.telemetry.event.verdict_event import Choice as Decided

__all__ = [
    "STAGES",
    "Answer",
    "AuditedDecisions",
    "Decided",
    "Decision",
    "GateAgreement",
    "change_mode",
    "decision_event",
    "evidence_in",
    "held",
    "made_again",
    "recheck",
    "rule_of_modes",
    "verdicts_in",
]

KINDS = {"Approval": Approval, "Decision": Decision, "GateAgreement": GateAgreement}


def verdicts_in(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the verdicts among the rows of a trail, in order."""
    known = [orjson.loads(row.header).get("verdict") for row in rows]
    return [each for each in known if each is not None]


def evidence_in(rows: Iterable[Any], kind: str) -> list[dict[str, Any]]:
    """Return the evidence of the verdicts of one *kind* of rule, in order."""
    told = [each for each in verdicts_in(rows) if each["kind"] == kind]
    return [orjson.loads(each["evidence"]) for each in told]


def made_again(rows: Iterable[Any]) -> set[Answer]:
    """Return how the verdicts are that are made again of their facts."""
    return {recheck(each, KINDS).answer for each in verdicts_in(rows)}
