"""The sizes of a scope's stores as people read them: measured now, beside earlier sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..subject_data.records import SubjectDataProvider
from .forecast import SizeHistory
from .measuring import Purposes, StoreGrowth, measure
from .sampler import note

GROWTH_HEADS = ("store", "class", "purpose", "status", "rows", "size", "full in")

_SAMPLED = "~"
_UNITS = ("B", "kB", "MB", "GB", "TB")
_STEP = 1000


class GrowthReport(NamedTuple):
    """
    The sizes of all stores.

    Attributes:
        days: Until each is full; None: unknown.
        problem: Why this measurement was not noted for later ones. None: it was.
    """

    stores: Sequence[StoreGrowth]
    days: Mapping[str, float | None]
    problem: str | None

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the rows of a table under `GROWTH_HEADS`; what has a ~ is an estimate."""
        for each in self.stores:
            left = self.days.get(each.store)
            full = "unknown" if left is None else f"{left:,.0f} days"
            for line in each.lines:
                mark = _SAMPLED if line.is_sampled else ""
                size = "unknown" if line.bytes is None else f"{mark}{_size(line.bytes)}"
                labels = (each.store, line.kind, line.purpose, line.status)
                yield *labels, f"{mark}{line.rows:,}", size, full
                full = ""

    def problems(self) -> Iterator[str]:
        """Yield which stores were not measured, and why, a line each."""
        yield from (f"{each.store}: {each.problem}" for each in self.stores if each.problem)


def growth_report(
    providers: Mapping[str, SubjectDataProvider],
    purposes: Purposes | None,
    *,
    limits: Mapping[str, int],
    path: Path,
    at_s: float,
) -> GrowthReport:
    """
    Measure each store, and note it in the file of earlier sizes; see `measure`.

    Args:
        providers: By the name of their store.
        purposes: Looks purposes up. None: there is no audit trail.
        limits: What a store may hold, in bytes, by its name.
        path: The file of earlier sizes.
        at_s: The time, in seconds since 1970 UTC.
    """
    found = measure(providers, purposes, limits)
    try:
        return GrowthReport(found, note(SizeHistory(path), found, at_s), None)
    except OSError as exc:
        return GrowthReport(found, {}, f"{path} cannot be written: {(exc.strerror or '').lower()}")


def _size(size_bytes: float) -> str:
    for unit in _UNITS:
        if size_bytes < _STEP or unit == _UNITS[-1]:
            return f"{size_bytes:,.0f} {unit}" if unit == "B" else f"{size_bytes:,.1f} {unit}"
        size_bytes /= _STEP
    return ""
