"""Pieces of PromQL that several panels and rules need, and the pace at which rules look."""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"(\d+)([smhd])")


def counted(series: str, window: str, *, by: str) -> str:
    """
    Return by how much the counters of *series* went up in *window*.

    Not ``increase()`` alone: a counter that is born at 1, as one with a label is when the first bad
    thing happens, has not increased since it was first seen, and the first would go untold.
    """
    born = f"({series} unless {series} offset {window})"
    return f"sum by ({by}) ({born} or increase({series}[{window}]))"


@dataclass(frozen=True, slots=True)
class Pace:
    """
    How fast the rules live: durations are divided by *speed*.

    It is 1 but in the test that runs them for real and has no hour to wait.
    """

    speed: int = 1

    def __call__(self, duration: str) -> str:
        """Return *duration*, as ``5m``, at this pace."""
        return duration if self.speed == 1 else f"{self.seconds(duration)}s"

    def seconds(self, duration: str) -> int:
        """Return it as a number: never less than 2."""
        found = _DURATION.fullmatch(duration)
        if found is None:
            raise ValueError(f"{duration!r} is no duration such as 5m")
        return max(2, int(found[1]) * _UNITS_S[found[2]] // self.speed)
