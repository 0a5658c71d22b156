"""
The books of a run's phases, of time or of money: what each has, has spent, and has left.

They are facts of the run, in whole milliseconds or trillionths of a dollar, since sums of fractions
drift; and functions of facts, so that what was decided on them can be decided again. The pool is
what the envelopes have more than the limits, so that nothing is lost or made on the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from .rule import Fact, Facts

KILL_PERCENT: Final = 110
"""Percent of an envelope above which a phase is ended."""

CEILING: Final = "ceiling"
"""The reason of what ends the run and not a phase alone."""

_WHOLE_WEIGHT = 1_000_000


class Mode(StrEnum):
    """
    How much a run may still do, in order.

    Attributes:
        NORMAL: All that it likes.
        CONSERVE: With less: searches of memory find fewer, and are not ranked again.
        SYNTHESIS_ONLY: With what it has: nothing is recalled or remembered any more.
        TERMINATE: Nothing: the phase, or the run, is ended.
    """

    NORMAL = "normal"
    CONSERVE = "conserve"
    SYNTHESIS_ONLY = "synthesis_only"
    TERMINATE = "terminate"


_WHOLES = {"s": ("ms", "seconds", 10**3), "usd": ("picousd", "usd", 10**12)}
"""Of a unit: what is counted, the field of a phase with its envelope, and the parts of one."""

_RANK = {mode: rank for rank, mode in enumerate(Mode)}


@dataclass(frozen=True, slots=True)
class Phase:
    """
    A phase of a run, and its envelope: *seconds*, *usd* or both.

    Attributes:
        name: Its name.
        seconds: Time that the run may be in it.
        usd: What its model calls may cost.
        protected: It gives nothing away, and others may not use what it will need.
        weight: Its part of the pool as it begins, beside the weights of those still to begin.
    """

    name: str
    seconds: float | None = None
    usd: float | None = None
    protected: bool = False
    weight: float = 0.0


class Standing(NamedTuple):
    """How a limit stands; *left* is in parts of its unit."""

    mode: Mode = Mode.NORMAL
    reason: str = ""
    evidence: Mapping[str, Fact] = {}
    left: float = math.inf


def tightest(*standings: Standing) -> Standing:
    """Return the first of those with the strictest mode."""
    return max(standings, key=lambda each: _RANK[each.mode])


class Books:
    """
    The books of one unit.

    Args:
        name: The rule's, which facts begin with.
        unit: ``s`` or ``usd``.
        phases: The phases.
        ceiling: What all of the run may use. None: there is no such limit.
        tail: What of it phases may not.
        conserve_at: Share of what a phase has from which it conserves.
    """

    def __init__(
        self,
        name: str,
        unit: str,
        phases: Sequence[Phase],
        *,
        ceiling: float | None,
        tail: float = 0.0,
        conserve_at: float,
    ) -> None:
        self._name, self._unit = name, unit
        self._whole, field, parts = _WHOLES[unit]
        self._parts = parts
        self._phases = {each.name: each for each in phases}
        given = ((each.name, getattr(each, field)) for each in phases)
        self._envelopes = {each: round(of * parts) for each, of in given if of is not None}
        self._ceiling = math.inf if ceiling is None else round(ceiling * parts)
        self._tail, self._conserve_at = round(tail * parts), conserve_at
        self._after = {
            each.name: [later for later in phases[place:] if later.protected]
            for place, each in enumerate(phases, 1)
        }
        self._since = f"{name}.since_{self._whole}"

    def now(self, facts: Facts) -> int:
        """Return what the run has used."""
        return round((facts.elapsed_s if self._unit == "s" else facts.cost_usd) * self._parts)

    def stands(self, at: str | None, facts: Facts) -> Standing:
        """Return how the phase that the run is in stands, or the run that is in none."""
        now = self.now(facts)
        clock = self._ceiling - now
        if at is None or clock <= 0:
            mode = Mode.TERMINATE if clock <= 0 else Mode.NORMAL
            return Standing(mode, CEILING, {f"spent_{self._unit}": now / self._parts}, clock)
        clock -= self._tail + sum(self._needs(each.name, facts) for each in self._after[at])
        spent, limit = self._spent(at, facts, is_now=True), self._limit(at, facts.known)
        found = self.compared(at, spent, min(limit, spent + clock), "overrun")
        if clock <= 0:
            return found._replace(mode=Mode.TERMINATE, reason="reserved")
        return found

    def left(self, standing: Standing) -> float:
        """Return what is left, in the unit."""
        return max(0.0, standing.left / self._parts)

    def compared(self, at: str, spent: int, limit: float, reason: str) -> Standing:
        """Return how *spent* in a phase stands beside a *limit*."""
        mode = Mode.NORMAL
        if spent * 100 > limit * KILL_PERCENT:
            mode = Mode.TERMINATE
        elif spent >= limit:
            mode = Mode.SYNTHESIS_ONLY
        elif spent >= limit * self._conserve_at and not self._phases[at].protected:
            mode = Mode.CONSERVE
        evidence: dict[str, Fact] = {"phase": at, f"spent_{self._unit}": spent / self._parts}
        if limit < math.inf:
            evidence[f"limit_{self._unit}"] = limit / self._parts
        return Standing(mode, reason, evidence, limit - spent)

    def moved(self, at: str | None, to: str | None, facts: Facts) -> Iterator[tuple[str, Fact]]:
        """Yield the facts that change as the run leaves phase *at* and is in *to*."""
        known = facts.known
        limits = {
            each: whole(known, self._fact(each, "limit"), of)
            for each, of in self._envelopes.items()
        }
        if at is not None and at in limits:
            spent = self._spent(at, facts, is_now=True)
            yield self._fact(at, "spent"), spent
            if not self._phases[at].protected:
                limits[at] = min(limits[at], spent)
        if to is not None and to in limits:
            pool = sum(self._envelopes.values()) - sum(limits.values())
            back = min(max(0, self._envelopes[to] - limits[to]), pool)
            begin = [each for each in limits if self._fact(each, "spent") not in known]
            weights = {each: round(self._phases[each].weight * _WHOLE_WEIGHT) for each in begin}
            drawn = (pool - back) * weights.get(to, 0) // max(1, sum(weights.values()))
            limits[to] += back + drawn
            if to in weights:
                yield self._fact(to, "spent"), 0
        for each, limit in limits.items():
            if each in {at, to}:
                yield self._fact(each, "limit"), limit
        yield self._since, self.now(facts)

    def _needs(self, phase: str, facts: Facts) -> float:
        if phase not in self._envelopes:
            return 0
        return max(0, self._limit(phase, facts.known) - self._spent(phase, facts))

    def _fact(self, phase: str, what: str) -> str:
        return f"{self._name}.{phase}.{what}_{self._whole}"

    def _limit(self, phase: str, known: Mapping[str, Fact]) -> float:
        envelope = self._envelopes.get(phase)
        if envelope is None:
            return math.inf
        return whole(known, self._fact(phase, "limit"), envelope)

    def _spent(self, phase: str, facts: Facts, *, is_now: bool = False) -> int:
        spent = whole(facts.known, self._fact(phase, "spent"))
        return spent + self.now(facts) - whole(facts.known, self._since) if is_now else spent


def whole(known: Mapping[str, Fact], name: str, otherwise: int = 0) -> int:
    """Return a fact that is a whole number."""
    found = known.get(name)
    return found if isinstance(found, int) else otherwise
