"""
What a rule is: a pure function of the facts about a run, and the verdict that it returns.

A rule is asked at the points that the layer stands at: before a memory operation, a model call or a
tool call, and at the end of a node. It has no clock, no state and no model of its own: the same
facts lead to the same verdict, in another process as well. Facts and verdicts hold numbers, flags,
codes and keyed hashes, never content.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from ...telemetry.event.verdict_event import Outcome, Point, VerdictEvent
from ...telemetry.process.version import running_version
from ...telemetry.text import json_text
from ..context import EMPTY_SCOPE, Scope
from ..guard.call import Call

__all__ = [
    "ALLOW",
    "LONGEST_TEXT",
    "MOST_KNOWN",
    "MOST_TURNS",
    "PASSES",
    "Action",
    "Fact",
    "Facts",
    "Fails",
    "Outcome",
    "Point",
    "Rule",
    "StandaloneRule",
    "Turn",
    "Verdict",
    "facts_from",
    "verdict_event",
    "with_known",
]

Fact: TypeAlias = bool | int | float | str | None
"""A value of a fact: text is a code, an id of ours or a hash, of 64 characters at most."""

MOST_TURNS: Final = 12
"""Ends of nodes that facts look back upon."""

MOST_KNOWN: Final = 64
"""Facts of rules' own and of the caller's that are kept of a run."""

LONGEST_TEXT: Final = 64


class Fails(StrEnum):
    """
    The decision in place of a failing rule's.

    Attributes:
        CLOSED: Refuse: rules of privacy and scope.
        OPEN: Allow: rules of spend and progress.
        TO_HUMAN: Hold: approval.
    """

    CLOSED = "closed"
    OPEN = "open"
    TO_HUMAN = "to_human"

    @property
    def outcome(self) -> Outcome:
        """The outcome of a rule that fails so."""
        return _FAILED[self]


_FAILED = {
    Fails.CLOSED: Outcome.REFUSE,
    Fails.OPEN: Outcome.ALLOW,
    Fails.TO_HUMAN: Outcome.HOLD,
}


class Turn(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """
    One run of a node, as far as it can be judged.

    Attributes:
        node: Keyed hash of its name.
        likeness: How like its text is to the likest of the node's earlier texts, -1 to 1. None:
            unknown.
        quality: The caller's own score of it, where one was noted.
    """

    node: str
    likeness: float | None = None
    quality: float | None = None


class Facts(msgspec.Struct, frozen=True):
    """
    All that rules may know: of one run until now, and of what is asked.

    Attributes:
        point: Where it is asked.
        what: Of memory: the class of the operation. Of models, nodes and tools: the keyed hash of
            the name.
        is_whole: Whether all of the run is known, from its start. False: it was resumed, and not
            all of what was before can be read.
        elapsed_s: Seconds that the run has been at work, those that it was interrupted left out.
        cost_usd: Of its model calls.
        unpriced_calls: Model calls whose cost is not known.
        input_tokens: Of its model calls.
        output_tokens: Of its model calls.
        model_calls: That ended.
        tool_calls: That ended.
        node_ends: Nodes that ended.
        recalls: Recalls that were answered.
        writes: Memories written.
        errors: Model calls, tools and nodes that failed one after the other, up to now.
        iteration: Most runs of one and the same node.
        turns: The latest ends of nodes, oldest first.
        stale: What was done since anything new was: calls with their answers, texts, recalls and
            writes that the run has seen before.
        repeats: How often one and the same of these was done since then.
        known: What rules have seen for themselves, and what the caller has noted, by name.
        silent_s: Since the latest chunk of that stream of a model which is silent the longest.
    """

    point: Point
    what: str = ""
    is_whole: bool = True
    elapsed_s: float = 0.0
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    node_ends: int = 0
    recalls: int = 0
    writes: int = 0
    errors: int = 0
    iteration: int = 0
    turns: tuple[Turn, ...] = ()
    stale: int = 0
    repeats: int = 0
    known: Mapping[str, Fact] = msgspec.field(default_factory=dict[str, Fact])
    silent_s: float = 0.0

    def text(self) -> str:
        """Return the facts as JSON, which `facts_from` reads back as equal facts."""
        return _ENCODER.encode(self).decode()


def with_known(facts: Facts, known: Mapping[str, Fact]) -> Facts:
    """Return *facts* with *known* among those that go by name."""
    if not known:
        return facts
    return msgspec.structs.replace(facts, known={**facts.known, **known})


_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_DECODER: Final = msgspec.json.Decoder(Facts)


def facts_from(text: str) -> Facts:
    """
    Return the facts that `Facts.text` wrote.

    Raises:
        msgspec.ValidationError: The text is none of facts.
    """
    return _DECODER.decode(text)


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    What a rule decides on facts.

    Attributes:
        outcome: What is done.
        reason: Why: a code of the rule's own. Empty where all is well.
        evidence: The figures that decided, by name.
        spare: Of a memory operation that is allowed: why a search finds less, and what share.
    """

    outcome: Outcome = Outcome.ALLOW
    reason: str = ""
    evidence: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    spare: tuple[str, float] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to tell."""
        return self.outcome is Outcome.ALLOW and not self.reason


ALLOW: Final = Verdict()
"""Nothing to object to."""


class Rule(Protocol):
    """One rule."""

    @property
    def name(self) -> str:
        """Its name in events, metrics and errors. Two rules of a scope have different ones."""
        ...

    @property
    def points(self) -> frozenset[Point]:
        """The points at which the guard consults this rule."""
        ...

    @property
    def fails(self) -> Fails:
        """The decision if this rule raises."""
        ...

    @property
    def shadow(self) -> bool:
        """Whether it decides and tells, but lets everything pass."""
        ...

    def settings(self) -> Mapping[str, Any]:
        """Return what it was made with, as JSON types about nobody: ``Kind(**settings)`` is it."""
        ...

    def decide(self, facts: Facts, /) -> Verdict:
        """Return the verdict on *facts*. Pure: it looks at nothing else."""
        ...


class StandaloneRule:
    """A rule of no rulebook: the code that decides by this rule consults it directly."""

    points: frozenset[Point] = frozenset()
    fails = Fails.TO_HUMAN
    shadow = False

    def settings(self) -> Mapping[str, Any]:
        """Return nothing: there are no settings."""
        return {}


def verdict_event(rule: Rule, verdict: Verdict, facts: Facts) -> VerdictEvent:
    """Return the event of *verdict*, with the settings and facts that led to the verdict."""
    shadows = rule.shadow and verdict.outcome is not Outcome.ALLOW
    return VerdictEvent(
        rule=rule.name,
        kind=type(rule).__name__,
        point=facts.point,
        outcome=Outcome.SHADOW if shadows else verdict.outcome,
        would=verdict.outcome if shadows else None,
        reason=verdict.reason,
        evidence=dict(verdict.evidence),
        settings=json_text(dict(rule.settings())),
        facts=facts.text(),
        version=running_version(),
    )


class Action(msgspec.Struct, frozen=True):
    """
    One action about to be done, raw: for witnesses, which make facts of it. It goes nowhere else.

    Its `repr` shows the point alone.

    Attributes:
        point: Where it is asked.
        name: Of the method, model, node or tool.
        scope: For whom.
        call: Of a memory operation: the call, its arguments redacted.
        operations: Of a memory operation that is to be done: itself, or those of a batch, each as a
            call. Empty: they are unknown.
        store: Of a memory operation: the store's name.
        about: Of a tool: its arguments. Of a model: what is said to it.
        again: It was allowed before: a model that streams, or an attempt that is to be made again.
        least: Of a memory operation: how far the least trusted of what the run has read is to be
            trusted, where a rule asks for that.
    """

    point: Point
    name: str = ""
    scope: Scope = EMPTY_SCOPE
    call: Call | None = None
    about: Any = None
    operations: tuple[Call, ...] = ()
    store: str = ""
    again: bool = False
    least: int | None = None

    def __repr__(self) -> str:
        """Show the point alone: names and arguments are a user's."""
        return f"Action({self.point.value})"


PASSES: Final[Mapping[str, Fact]] = MappingProxyType({})
"""
What a rule's ``witness`` returns of what the rule allows whatever else is known: it is not asked.
"""
