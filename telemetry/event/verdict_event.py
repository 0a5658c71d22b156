"""The part of an event that reports what a rule decided, and the facts it was decided on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Self

from ..text import json_text
from .fact_marks import marks_of
from .part import EventPart


class Outcome(StrEnum):
    """
    The decision of a rule. Closed: safe as a metric label.

    Attributes:
        ALLOW: Go on. Only told where the rule failed and fails open.
        SHADOW: Go on; were the rule not in shadow, it had not been.
        HOLD: A human decides.
        REFUSE: This operation is not done.
        STOP: The run ends.
    """

    ALLOW = "allow"
    SHADOW = "shadow"
    HOLD = "hold"
    REFUSE = "refuse"
    STOP = "stop"


class Point(StrEnum):
    """Where a rule is asked. Closed: safe as a metric label."""

    MEMORY = "memory"
    MODEL = "model"
    NODE = "node"
    TOOL = "tool"


class Choice(StrEnum):
    """
    What a human decides of what a rule held.

    Attributes:
        APPROVE: It is good as it is.
        EDIT: Something else is done in its place.
        REJECT: It is not done.
        SKIP: Nothing yet: no decision.
        USED: No human's: a held write has passed by an approval, which is used up.
    """

    APPROVE = "approve"
    EDIT = "edit"
    REJECT = "reject"
    SKIP = "skip"
    USED = "used"


class VerdictEvent(EventPart, tag="verdict", frozen=True, kw_only=True):
    """
    A decision of a rule that is no plain ``allow``. Holds numbers, codes and hashes only.

    Attributes:
        rule: The rule's name. A capped label.
        kind: Which rule of this package it is, or the class of the user's own.
        point: Where it was asked.
        would: Of a rule in shadow: what it would have decided.
        reason: Why: one of the rule's own codes.
        settings: The rule's own settings, as JSON: with the facts, the decision can be made again.
        facts: What it was decided on, as JSON.
        version: Of this package, whose rule it was. Empty: unknown.
    """

    is_notice: ClassVar[bool] = True

    rule: str
    kind: str
    point: Point
    outcome: Outcome
    would: Outcome | None = None
    reason: str
    evidence: Mapping[str, Any]
    settings: str
    facts: str
    version: str = ""

    def sentence(self) -> str:
        """Return a one-line description for people."""
        said = f"would {self.would}" if self.would else self.outcome.value
        return f"rule {self.rule} at a {self.point}: {said}, because {self.reason}"

    def fields(self) -> dict[str, Any]:
        """Return the fields by the names that log records and runs use, without the facts."""
        known = {
            "rule": self.rule,
            "rule_kind": self.kind,
            "rule_point": self.point.value,
            "verdict": self.outcome.value,
            "verdict_would": self.would and self.would.value,
            "verdict_reason": self.reason,
            **{f"verdict_{name}": value for name, value in self.evidence.items()},
        }
        return {name: value for name, value in known.items() if value is not None}

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of a span, without figures and facts."""
        return {
            "mnemoscope.rule.name": self.rule,
            "mnemoscope.rule.point": self.point.value,
            "mnemoscope.verdict": self.outcome.value,
            "mnemoscope.verdict.would": self.would and self.would.value,
            "mnemoscope.verdict.reason": self.reason,
        }

    def sealed(self) -> dict[str, Any]:
        """Return all of it: facts and settings as texts, whose fractions read back as they are."""
        return {
            "evidence": json_text(dict(self.evidence)),
            "facts": self.facts,
            "kind": self.kind,
            "marks": marks_of(self.facts, self.settings),
            "outcome": self.outcome.value,
            "point": self.point.value,
            "reason": self.reason,
            "rule": self.rule,
            "settings": self.settings,
            "version": self.version,
            "would": self.would and self.would.value,
        }

    def renamed(self, rename: Callable[[Any], Any]) -> Self:  # noqa: ARG002
        """Return it as it is: the decision is made again from these very facts."""
        return self
