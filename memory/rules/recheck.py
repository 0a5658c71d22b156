"""Making a recorded verdict again, from the facts and settings that were sealed with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
import orjson

from ...telemetry.event.text import json_text
from ...telemetry.event.verdict_event import Outcome
from .held_writes import settled
from .rule import Facts, Rule, Verdict, facts_from
from .rulebook import FAILED, decided, failed


class Answer(Enum):
    """Whether a verdict is what its facts lead to."""

    SAME = "same"
    DIFFERS = "differs"
    UNKNOWN = "cannot tell"


@dataclass(frozen=True, slots=True)
class Recheck:
    """
    What came of making a verdict again.

    Attributes:
        answer: Whether it is the same.
        why: Where it differs, or why that cannot be told. Empty: it is the same.
    """

    answer: Answer
    why: str = ""


def recheck(sealed: Mapping[str, Any], kinds: Mapping[str, Callable[..., Rule]]) -> Recheck:
    """
    Make a verdict again.

    Args:
        sealed: The verdict, as the header of its event has it.
        kinds: What makes a rule of its settings, by the rule's kind.
    """
    make = kinds.get(sealed["kind"])
    if make is None:
        return Recheck(Answer.UNKNOWN, f"there is no rule of the kind {sealed['kind']}")
    try:
        rule, facts = make(**orjson.loads(sealed["settings"])), facts_from(sealed["facts"])
    except (TypeError, ValueError, msgspec.MsgspecError) as exc:
        return Recheck(
            Answer.UNKNOWN, f"its settings or facts cannot be read ({type(exc).__name__})"
        )
    if facts.text() != sealed["facts"]:
        return Recheck(Answer.UNKNOWN, "its facts have fields that this version does not know")
    verdict = _again(rule, facts, sealed)
    shadows = sealed["outcome"] == Outcome.SHADOW
    found = {
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "evidence": json_text(dict(verdict.evidence)),
    }
    said = {**sealed, "outcome": sealed["would"] if shadows else sealed["outcome"]}
    differing = [
        f"{name} is {said[name]}, its facts lead to {of or 'none'}"
        for name, of in found.items()
        if said[name] != of
    ]
    return Recheck(Answer.DIFFERS, "; ".join(differing)) if differing else Recheck(Answer.SAME)


def _again(rule: Rule, facts: Facts, sealed: Mapping[str, Any]) -> Verdict:
    evidence = orjson.loads(sealed["evidence"])
    where, reason = evidence.get("where"), evidence.get("held_for", sealed["reason"])
    if reason == FAILED and where == "witness":
        return settled(failed(rule, where), facts)  # it failed before there were facts
    try:
        return decided(rule, facts)
    except Exception:  # noqa: BLE001 - as when it was asked
        return settled(failed(rule, "decide"), facts)
