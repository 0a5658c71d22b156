"""PromQL that several panels and rules share, and the durations of rules."""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"(\d+)([smhd])")


WHOLE = '{{ printf "%.0f" $value }}'
"""The value of an alert: Prometheus extrapolates counts to fractions, and shares are per cent."""


ORIGIN = "job, service, environment"
"""The labels of a target that alerts keep: one for each service of each environment."""


def quoted(value: str) -> str:
    """Return *value* as a string of PromQL's."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def counted(series: str, window: str, *, by: str) -> str:
    """
    Return the increase of the counters of *series* in *window*.

    ``increase()`` alone misses the first count of a labelled counter, which Prometheus first sees
    at 1.
    """
    born = f"({series} unless {series} offset {window})"
    return f"sum by ({by}) ({born} or increase({series}[{window}]))"


@dataclass(frozen=True, slots=True)
class RuleSpeed:
    """
    The durations of rules, divided by *speed*.

    It is 1 except in the test that runs the rules for real.
    """

    speed: int = 1

    def __call__(self, duration: str) -> str:
        """Return *duration*, such as ``5m``, at this pace."""
        return duration if self.speed == 1 else f"{self.seconds(duration)}s"

    def seconds(self, duration: str) -> int:
        """Return *duration* in seconds at this pace, at least 2."""
        found = _DURATION.fullmatch(duration)
        if found is None:
            raise ValueError(f"{duration!r} is not a duration such as 5m")
        return max(2, int(found[1]) * _UNITS_S[found[2]] // self.speed)
