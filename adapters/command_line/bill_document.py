"""What ``mnemoscope spend`` found, as a script reads it: JSON or CSV. Names as everywhere."""

from __future__ import annotations

import csv
from dataclasses import asdict
from typing import IO, Any, Final

from ...audit.spending import Dimension, Line, Spending
from ...telemetry.text import utc_text
from .bill import Bill

REFERENCE: Final = 8
"""Length of the opaque reference that stands for a customer."""

_UNNAMED: dict[Dimension, str] = {
    "feature": "no feature",
    "node": "no node",
    "model": "no model",
    "customer": "nobody named",
}


def name_of(name: str | None, dimension: Dimension) -> str:
    """Return one of the names of a line, as people see it."""
    if name is None:
        return _UNNAMED[dimension]
    return name[:REFERENCE] if dimension == "customer" else name


def as_document(told: Bill) -> dict[str, Any]:
    """Return it for ``--json``."""
    found, moved = told.found, told.moved
    return {
        "since": utc_text(found.period.since_us),
        "until": utc_text(found.period.until_us),
        "before": utc_text(found.period.before_us),
        "by": list(found.by),
        "lines": [_document(line, found.by) for line in found.lines],
        "total": asdict(found.now),
        "total_before": asdict(found.before),
        "moved": asdict(moved) | {"factor": moved.factor} if moved else None,
        "said": told.said,
    }


def _document(line: Line, by: tuple[Dimension, ...]) -> dict[str, Any]:
    named = zip(by, line.names, strict=True)
    names: dict[str, Any] = {each: _reference(name, each) for each, name in named}
    return {**names, **asdict(line.now), "before": asdict(line.before)}


def _reference(name: str | None, dimension: Dimension) -> str | None:
    return None if name is None else name_of(name, dimension)


def write_csv(found: Spending, file: IO[str]) -> None:
    """Write the lines to *file*, with a head."""
    writer = csv.writer(file, lineterminator="\n")
    figures = list(asdict(found.now))
    writer.writerow([*found.by, *figures, *(f"before_{each}" for each in figures)])
    for line in found.lines:
        names = (_reference(name, each) for name, each in zip(line.names, found.by, strict=True))
        writer.writerow([*names, *asdict(line.now).values(), *asdict(line.before).values()])
