"""Deviations: runs of agents that are not as the days before, and work that earns nothing."""

from __future__ import annotations

from .runs import OpenRuns
from .search import (
    Deviation,
    Deviations,
    DeviationSearch,
    MeasureShift,
    NamedRun,
    find_deviations,
)

__all__ = [
    "Deviation",
    "DeviationSearch",
    "Deviations",
    "MeasureShift",
    "NamedRun",
    "OpenRuns",
    "find_deviations",
]
