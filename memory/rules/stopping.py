"""
The rule that ends a run which costs too much, takes too long, or gets nowhere.

Ten conditions, in this order. Hard ones: cost, time, output, errors, and the caller's own signal.
Smart ones: the run goes in circles, it says the same again and finds nothing new, it improves no
more, or it is good enough. And a net: too many runs of one node.

Circles are told by what was done: the same call with the same answer, the same recall, the same
write, and, where a model asks for no tool, the same text. Whatever is new ends a circle, so that
polling and work on a list are none. Nodes do not count, nor does what is said beside a call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import pairwise
from typing import Any, Final

from ...telemetry.event.verdict_event import Outcome, Point
from ..errors import ConfigurationError
from .escalation import Escalate, granted, steps_of
from .rule import ALLOW, Fact, Facts, Fails, Verdict

LONG_CIRCLE: Final = 4
"""Of a long circle two rounds suffice: that is when so many times `patience` was seen before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """
    Ends a run by ten conditions, the first that holds. None switches one off.

    Attributes:
        max_cost_usd: Of the run's model calls.
        timeout_s: Seconds that the run is at work.
        max_output_tokens: Of the run's model calls.
        max_errors: Model calls, tools and nodes that fail one after the other.
        patience: How often something is done again while nothing new is; of long circles, twice.
        similarity: Likeness of two texts above which nothing new is said. It ends the run only
            where the caller has noted ``novel_issues=0``.
        min_improvement: Least by which ``quality``, as the caller notes it, has to grow.
        improvement_window: In how many turns.
        quality_bar: Value of ``quality`` that is good enough; ``accepted=True`` is as well.
        not_before: Runs of one node before the smart conditions count, circles left out.
        max_iterations: Runs of one node.
        embed: Returns the vector of a text, for what models say. None: texts are not compared.
        escalate: Asked before a stop, except of an abort: see `GoOn`, `AskHuman` and `RETURN_BEST`.
            Plain, or a coroutine function. None: nobody is asked.
        escalations: How many times a run.
        escalate_within_s: Seconds that it has. After them, or where it raises, the run is stopped.
        shadow: Tell, and stop nothing.
        name: Its name in events and metrics.

    Raises:
        ConfigurationError: A limit is no number more than 0, or another argument of a wrong type.
    """

    max_cost_usd: float | None = 2.0
    timeout_s: float | None = 300.0
    max_output_tokens: int | None = 8_000
    max_errors: int | None = 3
    patience: int | None = 3
    similarity: float | None = 0.92
    min_improvement: float | None = 0.05
    improvement_window: int = 3
    quality_bar: float | None = 0.8
    not_before: int = 2
    max_iterations: int | None = None
    embed: Callable[[str], Iterable[float]] | None = field(default=None, repr=False)
    escalate: Escalate | None = field(default=None, repr=False)
    escalations: int = 1
    escalate_within_s: float = 30.0
    shadow: bool = False
    name: str = "stopping"

    def __post_init__(self) -> None:
        for each in fields(self):
            problem = _problem(str(each.type), getattr(self, each.name))
            if problem is not None:
                raise ConfigurationError(f"{each.name} of Stopping must be {problem}")

    @property
    def points(self) -> frozenset[Point]:
        """As nodes end, and before each model call."""
        return frozenset({Point.NODE, Point.MODEL})

    @property
    def fails(self) -> Fails:
        """Open: a run is not ended by an error of ours."""
        return Fails.OPEN

    def settings(self) -> dict[str, Any]:
        """Return what it was made with, but for the functions."""
        names = [each.name for each in fields(self) if each.name not in {"embed", "escalate"}]
        return {each: getattr(self, each) for each in names}

    def decide(self, facts: Facts, /) -> Verdict:
        """Return the verdict by the first condition that holds."""
        return self._hard(facts) or (None if _has_steps(facts) else self._smart(facts)) or ALLOW

    def _hard(self, f: Facts) -> Verdict | None:
        more = partial(granted, f.known)
        if self.max_cost_usd is not None and f.cost_usd >= self.max_cost_usd + more("usd"):
            return _stop("cost", cost_usd=f.cost_usd)
        if self.timeout_s is not None and f.elapsed_s >= self.timeout_s + more("seconds"):
            return _stop("timeout", elapsed_s=f.elapsed_s)
        most_tokens = self.max_output_tokens
        if most_tokens is not None and f.output_tokens >= most_tokens + more("tokens"):
            return _stop("output_tokens", output_tokens=f.output_tokens)
        if self.max_errors is not None and f.errors >= self.max_errors and not _has_steps(f):
            return _stop("errors", errors=f.errors)
        if f.known.get("abort") is True:
            return _stop("aborted")
        return None

    def _smart(self, f: Facts) -> Verdict | None:
        if self.patience is not None and (
            f.repeats >= self.patience or (f.repeats > 1 and f.stale >= LONG_CIRCLE * self.patience)
        ):
            return _stop("cycle", repeats=f.repeats, stale=f.stale)
        if f.iteration >= self.not_before:
            if self._says_the_same(f):
                return _stop("similar", likeness=f.turns[-1].likeness)
            if (gain := self._too_little_gain(f)) is not None:
                return _stop("diminishing", gain=gain)
            if self._is_accepted(f):
                return _stop("accepted", quality=f.known.get("quality"))
        if self.max_iterations is not None and f.iteration >= self.max_iterations:
            return _stop("iterations", iteration=f.iteration)
        return None

    def _says_the_same(self, facts: Facts) -> bool:
        if self.similarity is None or not facts.turns or facts.known.get("novel_issues") != 0:
            return False
        likeness = facts.turns[-1].likeness
        return likeness is not None and likeness > self.similarity

    def _too_little_gain(self, facts: Facts) -> float | None:
        """Return by how much the quality has grown at most, if that is too little."""
        if self.min_improvement is None or "quality" not in facts.known:
            return None
        scores = [each.quality for each in facts.turns if each.quality is not None]
        scores = scores[-self.improvement_window - 1 :]
        if len(scores) <= self.improvement_window:
            return None
        gain = max(later - before for before, later in pairwise(scores))
        return gain if gain < self.min_improvement else None

    def _is_accepted(self, facts: Facts) -> bool:
        if facts.known.get("accepted") is True:
            return True
        quality, bar = facts.known.get("quality"), self.quality_bar
        return isinstance(quality, int | float) and bar is not None and quality >= bar


def _problem(declared: str, value: Any) -> str | None:
    """Return what a value should have been. None: it is."""
    if "Callable" in declared or "Escalate" in declared:
        return None if value is None or callable(value) else "a function, or None"
    if declared in {"bool", "str"}:
        return None if type(value).__name__ == declared else f"a {declared}"
    if value is None and "None" in declared:
        return None
    kinds = (int, float) if "float" in declared else (int,)
    if isinstance(value, kinds) and not isinstance(value, bool) and 0 < value < math.inf:
        return None
    kind = "a number" if "float" in declared else "a whole number"
    return f"{kind} more than 0{', or None' if 'None' in declared else ''}"


def _has_steps(facts: Facts) -> bool:
    """Return whether steps are left that an escalation has granted."""
    return bool(facts.known) and steps_of(facts) < granted(facts.known, "until_step")


def _stop(reason: str, **evidence: Fact) -> Verdict:
    return Verdict(Outcome.STOP, reason, evidence)
