"""What is usual of an agent's operation: medians and spreads, of a bounded sample of its runs."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import combinations
from statistics import median
from typing import Any, NamedTuple, TypeAlias

SAMPLE = 2_000
"""Runs that are kept of each agent and operation, each as likely as the others."""

FEWEST = 50
"""Runs below which nothing is said of an agent's operation."""

ALONE, EACH, BOTH = 3.5, 1.2, 3.5
"""Robust deviations from which one measure stands out; two together, each and both added up."""

_TIMES_ALONE, _TIMES_TOGETHER = math.log(2.0), math.log(1.5)
_LEAST_SPREAD = 0.15
"""Of logarithms: where all runs are alike, a sixth more or less is still alike."""

_MAD = 1.4826
"""Of a normal distribution the standard deviation, in median absolute deviations."""

Side: TypeAlias = tuple[int, int]
"""A measure by its place, and 1 for more than usual, -1 for less."""

Values: TypeAlias = Sequence[float | None]


class Spread(NamedTuple):
    """The median of one measure's logarithms, and their robust standard deviation."""

    middle: float
    scale: float


class Baseline:
    """
    What is usual of one operation of one agent.

    Args:
        least: Of each measure what counts as next to nothing: added before logarithms are taken.

    Attributes:
        runs: All runs before, sampled or not.
        spreads: Of each measure; None: too few runs had it. Empty until `settle`.
    """

    def __init__(self, least: Sequence[float]) -> None:
        self._least, self.runs = least, 0
        self._sample: list[Values] = []
        self._random = random.Random(0)  # noqa: S311 - the same sample for the same trail
        self.spreads: tuple[Spread | None, ...] = ()
        self._most = [-math.inf] * len(least)

    def add(self, values: Values) -> None:
        """Add a run."""
        self.runs += 1
        logs = self._logarithms(values)
        both = zip(self._most, logs, strict=True)
        self._most = [max(most, most if log is None else log) for most, log in both]
        # Vitter's algorithm R: a sample of the last runs would have no weekend in it.
        if len(self._sample) < SAMPLE:
            self._sample.append(logs)
        elif (place := self._random.randrange(self.runs)) < SAMPLE:
            self._sample[place] = logs

    def settle(self) -> None:
        """Find medians and spreads, and let go of the sample."""
        self.spreads = tuple(map(_spread, zip(*self._sample, strict=True)))
        self._sample.clear()

    def _logarithms(self, values: Values) -> Values:
        pairs = zip(values, self._least, strict=True)
        return tuple(
            None if each is None else math.log(max(each, 0.0) + least) for each, least in pairs
        )

    def signatures(self, values: Values) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yield ``apart`` and the measures, one or two together, that a run stands out by."""
        others: list[tuple[Side, float]] = []
        for place, (value, spread) in enumerate(zip(values, self.spreads, strict=True)):
            apart = self.apart(place, value)
            if apart is None or spread is None:
                continue
            side = (place, 1 if apart > 0 else -1)
            if abs(apart) >= max(ALONE * spread.scale, _TIMES_ALONE):
                yield "apart", (side,)
            if abs(apart) >= self.least_apart(place):
                others.append((side, abs(apart) / spread.scale))
        # Two that are each nothing much: a run that is both slow and short is seldom by chance.
        for (one, far), (other, further) in combinations(others, 2):
            if far + further >= BOTH:
                yield "apart", (one, other)

    def beyond(self, values: Values) -> Iterator[int]:
        """Yield the measures that are ten times the median, and twice what any run before had."""
        for place, log in enumerate(self._logarithms(values)):
            spread = self.spreads[place]
            if spread is None or log is None:
                continue
            if log >= max(spread.middle + math.log(10.0), self._most[place] + math.log(2.0)):
                yield place

    def least_apart(self, place: int) -> float:
        """Return by how much one of two measures has to differ, in logarithms."""
        spread = self.spreads[place]
        return math.inf if spread is None else max(EACH * spread.scale, _TIMES_TOGETHER)

    def apart(self, place: int, value: float | None) -> float | None:
        """Return by what *value* of a measure differs from the median, in logarithms."""
        spread = self.spreads[place]
        if value is None or spread is None:
            return None
        return math.log(max(value, 0.0) + self._least[place]) - spread.middle

    def usual(self, place: int) -> float:
        """Return the median of a measure, in its own unit; not a number where it is unknown."""
        spread = self.spreads[place]
        return math.nan if spread is None else math.exp(spread.middle) - self._least[place]


def _spread(logs: Sequence[float | None]) -> Spread | None:
    found = [each for each in logs if each is not None]
    if len(found) < FEWEST:
        return None
    middle = median(found)
    # Of a mean and a standard deviation one outage would make everything usual.
    spread = _MAD * median(abs(each - middle) for each in found)
    return Spread(middle, max(spread, _LEAST_SPREAD))
