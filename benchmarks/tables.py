"""Tables of figures: as Markdown, and on a terminal with columns under one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from statistics import median
from typing import NamedTuple

from benchmarks.rounds import Figures


class Goal(NamedTuple):
    """
    One line of the summary.

    Attributes:
        what: What is measured.
        goal: The figure wanted.
        figure: The figure seen; not a number where noise was larger than what was measured.
        unit: Of both.
        at_least: More is better.
    """

    what: str
    goal: float
    figure: float
    unit: str
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        """Whether the figure is at least as good as the goal."""
        return self.figure >= self.goal if self.at_least else self.figure <= self.goal

    def row(self) -> list[str]:
        """Return the cells of its line."""
        sign = "≥" if self.at_least else "≤"
        distance = "met" if self.is_met else f"missed: {self._ratio():.1f} times"
        if isnan(self.figure):
            distance = "cannot tell: the machine was too busy"
        return [
            self.what,
            f"{sign} {figure(self.goal)} {self.unit}",
            figure(self.figure),
            distance,
        ]

    def _ratio(self) -> float:
        return self.goal / self.figure if self.at_least else self.figure / self.goal


@dataclass(frozen=True, slots=True)
class Section:
    """A table: a heading, a line about it, a header and rows."""

    title: str
    about: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """Return it as Markdown."""
        lines = [f"## {self.title}", "", *([self.about, ""] if self.about else [])]
        lines.append("| " + " | ".join(self.header) + " |")
        lines.append("|" + "|".join(["---", *["---:"] * (len(self.header) - 1)]) + "|")
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(lines)


HEADER = (
    "",
    "median",
    "added",
    "mean",
    "p99",
    "blocked",
    "caller's CPU",
    "other threads' CPU",
)


def row_of(name: str, seen: Figures, bare: Figures | None) -> list[str]:
    """Return the cells of one case, with what it adds to the bare one if it is not that itself."""
    is_bare = bare is None or bare is seen
    added = "" if is_bare else figure(seen.above_us(bare))
    spent = (seen.blocked_us, seen.here_us, seen.elsewhere_us)
    figures = (seen.mean_us, seen.p99_us, *map(median, spent))
    return [name, figure(seen.median_us), added, *map(figure, figures)]


def figure(value: float) -> str:
    """Return *value* with as many digits as it deserves."""
    if isnan(value):
        return "?"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


def show(section: Section) -> None:
    """Print *section* with its columns under one another."""
    table = [list(section.header), *map(list, section.rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    say(f"\n{section.title}")
    for first, *rest in table:
        cells = [each.rjust(width) for each, width in zip(rest, widths[1:], strict=True)]
        say("  ".join(["", first.ljust(widths[0]), *cells]))


def say(line: str) -> None:
    """Print *line* now: the next takes a while."""
    print(line, flush=True)  # noqa: T201 - what it is for
