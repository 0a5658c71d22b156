"""Making a recorded verdict again, from the facts and settings that were sealed with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import msgspec
import orjson

from ...telemetry.event.fact_marks import changed_facts
from ...telemetry.event.verdict_event import Outcome
from ...telemetry.process.version import running_version
from ...telemetry.text import json_text
from .held_writes import settled
from .rule import Facts, Rule, Verdict, facts_from
from .rulebook import FAILED, decided, failed

EARLIER: Final = "sealed by an earlier version"


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
        why: Where it differs, or why that cannot be told. Empty: it is the same.
    """

    answer: Answer
    why: str = ""


def recheck(
    sealed: Mapping[str, Any],
    kinds: Mapping[str, Callable[..., Rule]],
    *,
    is_sealed: bool = True,
) -> Recheck:
    """
    Make a verdict again.

    Args:
        sealed: The verdict, as the header of its event has it.
        kinds: What makes a rule of its settings, by the rule's kind.
        is_sealed: Whether the event is the one that its leaf was made of.
    """
    changed = _changed(sealed)
    if not is_sealed:
        changed = ["its event was changed after it was sealed", *changed]
    found = _made_again(sealed, kinds)
    if not changed:
        return found
    return Recheck(Answer.DIFFERS, "; ".join([*changed, *filter(None, [found.why])]))


def _made_again(sealed: Mapping[str, Any], kinds: Mapping[str, Callable[..., Rule]]) -> Recheck:
    make, age = kinds.get(sealed["kind"]), _age(str(sealed.get("version", "")))
    if make is None:
        return Recheck(Answer.UNKNOWN, f"there is no rule of the kind {sealed['kind']}")
    try:
        rule, facts = make(**orjson.loads(sealed["settings"])), facts_from(sealed["facts"])
        lacking, strange = _other_fields(sealed["facts"], facts)
    except (TypeError, ValueError, msgspec.MsgspecError) as exc:
        why = f"its settings or facts cannot be read ({type(exc).__name__})"
        return Recheck(Answer.UNKNOWN, f"{age}: {why}" if age else why)
    if strange:
        return Recheck(Answer.UNKNOWN, "its facts have fields that this version does not know")
    age = age or (EARLIER if lacking else "")
    try:
        differing = _difference(_again(rule, facts, sealed), sealed)
    except Exception as exc:  # noqa: BLE001 - facts that were changed may be no rule's
        differing = f"its facts lead to no verdict ({type(exc).__name__})"
    if differing and age:
        return Recheck(Answer.UNKNOWN, f"{age}: {differing}")
    return Recheck(Answer.DIFFERS, differing) if differing else Recheck(Answer.SAME)


def _difference(verdict: Verdict, sealed: Mapping[str, Any]) -> str:
    """Return in what *verdict* is another one than the sealed one. Empty: in nothing."""
    shadows = sealed["outcome"] == Outcome.SHADOW
    found = {
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "evidence": _in_order(json_text(dict(verdict.evidence))),
    }
    said = {
        "outcome": sealed["would"] if shadows else sealed["outcome"],
        "reason": sealed["reason"],
        "evidence": _in_order(sealed["evidence"]),
    }
    return "; ".join(
        f"{name} is {said[name]}, its facts lead to {of or 'none'}"
        for name, of in found.items()
        if said[name] != of
    )


def _changed(sealed: Mapping[str, Any]) -> list[str]:
    """Return a line on facts changed after the sealing. Empty: none, or no marks were sealed."""
    if (marks := sealed.get("marks")) is None:
        return []
    try:
        names, gone = changed_facts(sealed["facts"], sealed["settings"], marks)
    except ValueError:
        return ["its facts were changed after they were sealed"]
    if gone:
        names += [each for each in Facts.__struct_fields__ if f'"{each}":' not in sealed["facts"]]
        names = names or ["a fact that is gone"]
    return [f"changed after it was sealed: {', '.join(names)}"] if names else []


def _age(version: str) -> str:
    """Return what is said of a verdict of another version than the one that runs."""
    if version == (running := running_version()):
        return ""
    numbers = [[int(each) for each in re.findall(r"\d+", of)] for of in (version, running)]
    if numbers[0] > numbers[1]:
        return f"sealed by a later version, {version}"
    return f"{EARLIER}, {version}" if version else EARLIER


def _other_fields(text: str, facts: Facts) -> tuple[bool, bool]:
    """Return whether sealed facts lack fields of this version, and whether they have others."""
    sealed, now = orjson.loads(text), orjson.loads(facts.text())
    lengths = [
        (len(then), len(turn))
        for then, turn in zip(sealed.get("turns", ()), now["turns"], strict=True)
    ]
    lacking = now.keys() - sealed.keys() or any(then < turn for then, turn in lengths)
    strange = sealed.keys() - now.keys() or any(then > turn for then, turn in lengths)
    return bool(lacking), bool(strange)


def _in_order(evidence: str) -> str:
    """Return *evidence* by name: facts, which it is taken from, are sealed so."""
    return orjson.dumps(orjson.loads(evidence), option=orjson.OPT_SORT_KEYS).decode()


def _again(rule: Rule, facts: Facts, sealed: Mapping[str, Any]) -> Verdict:
    evidence = orjson.loads(sealed["evidence"])
    where, reason = evidence.get("where"), evidence.get("held_for", sealed["reason"])
    if reason == FAILED and where == "witness":
        return settled(failed(rule, where), facts)  # it failed before there were facts
    try:
        return decided(rule, facts)
    except Exception:  # noqa: BLE001 - as when it was asked
        return settled(failed(rule, "decide"), facts)
