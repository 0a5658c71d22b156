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
from typing import Any, Final, NamedTuple

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


class LimitState(NamedTuple):
    """How a limit stands: the mode, what is left, and what is told where something is decided."""

    mode: Mode = Mode.NORMAL
    left: float = math.inf
    reason: str = ""
    evidence: Mapping[str, Fact] = {}


FINE: Final = LimitState()
"""There is no limit."""


def tighter(one: LimitState, other: LimitState) -> LimitState:
    """Return the one with the stricter mode, the first of equals."""
    if other.mode is Mode.NORMAL:  # what members are looked up by costs as much as all the rest
        return one
    return other if _RANK[other.mode] > _RANK[one.mode] else one


class _Account(NamedTuple):
    """The facts with what a phase has spent and may spend, and its envelope."""

    spent: str
    limit: str
    envelope: int


class Books:
    """
    The books of one unit.

    Args:
        unit: ``s`` or ``usd``.
        ceiling: What all of the run may use. None: there is no such limit.
        tail: What of it phases may not.
        conserve_at: Share of what a phase has from which it conserves.
    """

    def __init__(
        self,
        unit: str,
        phases: Sequence[Phase],
        *,
        ceiling: float | None,
        tail: float = 0.0,
        conserve_at: float,
    ) -> None:
        whole, field, parts = _WHOLES[unit]
        self._unit, self._parts = unit, parts
        self._since, self._kept = f"phases.since_{whole}", f"phases.kept_{whole}"
        self._ceiling = math.inf if ceiling is None else round(ceiling * parts)
        self._tail, self._conserve_at = round(tail * parts), conserve_at
        self._phases = {each.name: each for each in phases}
        self._accounts = {
            each: _Account(f"phases.{each}.spent_{whole}", f"phases.{each}.limit_{whole}", envelope)
            for each, phase in self._phases.items()
            if (envelope := round((getattr(phase, field) or 0) * parts))
        }
        self.limits = bool(self._accounts) or ceiling is not None

    def now(self, facts: Facts) -> int:
        """Return what the run has used, in whole parts."""
        return round((facts.elapsed_s if self._unit == "s" else facts.cost_usd) * self._parts)

    def stands(self, at: str | None, facts: Facts) -> LimitState:
        """Return how the phase that the run is in stands, or the run that is in none."""
        if at is None and self._ceiling == math.inf:
            return FINE
        known: Mapping[str, Any] = facts.known
        now = self.now(facts)
        clock = self._ceiling - now
        if clock <= 0:
            evidence = {f"spent_{self._unit}": now / self._parts}
            return LimitState(Mode.TERMINATE, 0.0, CEILING, evidence)
        if at is None:
            return LimitState(left=clock / self._parts)
        spent, limit, account = now - known.get(self._since, now), math.inf, self._accounts.get(at)
        if account is not None:
            spent += known.get(account.spent, 0)
            limit = known.get(account.limit, account.envelope)
        if clock < math.inf:
            clock -= self._tail + known.get(self._kept, 0)
            limit = min(limit, spent + clock)
        return self.compared(at, spent, limit, "overrun" if clock > 0 else "reserved")

    def calm_until(self, at: str | None, known: Mapping[str, Any]) -> float:
        """Return what the run may have used before `stands` is about anything but ``normal``."""
        if at is None or not self.limits:
            return self._ceiling / self._parts
        spent: int = -known.get(self._since, 0)
        limit, account = math.inf, self._accounts.get(at)
        if account is not None:
            spent += known.get(account.spent, 0)
            limit = known.get(account.limit, account.envelope)
        clock: float = self._ceiling - self._tail - known.get(self._kept, 0) + spent
        # A part less: the run has used a fraction of one that `now` rounds up.
        return (min(limit, clock) * self._conserve_at - spent - 1) / self._parts

    def compared(self, at: str, spent: int, limit: float, reason: str) -> LimitState:
        """Return how *spent* in a phase stands beside a *limit*, both in whole parts."""
        left, mode = (limit - spent) / self._parts, Mode.NORMAL
        if spent < limit * self._conserve_at and left > 0:
            return LimitState(left=left)
        if spent < limit:
            return LimitState(mode if self._phases[at].protected else Mode.CONSERVE, left)
        is_over = reason == "reserved" or spent * 100 > limit * KILL_PERCENT
        evidence: dict[str, Fact] = {
            "phase": at,
            f"spent_{self._unit}": spent / self._parts,
            f"limit_{self._unit}": limit / self._parts,
        }
        mode = Mode.TERMINATE if is_over else Mode.SYNTHESIS_ONLY
        return LimitState(mode, max(0.0, left), reason, evidence)

    def moved(self, at: str | None, to: str | None, facts: Facts) -> Iterator[tuple[str, Fact]]:
        """Yield the facts that change as the run leaves phase *at* and is in *to*."""
        known: Mapping[str, Any] = facts.known
        accounts = self._accounts
        limits = {each: known.get(of.limit, of.envelope) for each, of in accounts.items()}
        now = self.now(facts)
        if at is not None and at in accounts:
            spent = known.get(accounts[at].spent, 0) + now - known.get(self._since, now)
            yield accounts[at].spent, spent
            if not self._phases[at].protected:
                limits[at] = min(limits[at], spent)
        if to is not None and to in accounts:
            pool = sum(each.envelope for each in accounts.values()) - sum(limits.values())
            back = min(max(0, accounts[to].envelope - limits[to]), pool)
            begin = [each for each, of in accounts.items() if of.spent not in known]
            weights = {each: round(self._phases[each].weight * _WHOLE_WEIGHT) for each in begin}
            drawn = pool * weights.get(to, 0) // max(1, sum(weights.values()))
            limits[to] += back + drawn
            if to in weights:
                yield accounts[to].spent, 0
        for each in accounts.keys() & {at, to}:
            yield accounts[each].limit, limits[each]
        yield self._since, now
        later = [*self._phases][[*self._phases].index(to) + 1 :] if to is not None else []
        yield (
            self._kept,
            sum(
                max(0, limits[each] - known.get(accounts[each].spent, 0))
                for each in later
                if each in accounts and self._phases[each].protected
            ),
        )
