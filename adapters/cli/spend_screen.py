"""The outcome of ``mnemoscope spend``: a table of 80 columns and a sentence, JSON, or CSV."""

from __future__ import annotations

import csv
from dataclasses import asdict
from typing import IO, Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...audit.queries.spending import Dimension, Line, Period, Spending, Spent
from ...audit.queries.top_mover import TopMover, moved_most, sentence
from ...telemetry.event.format import decimals
from ...telemetry.event.text import utc_text

SHOWN: Final = 20
"""Lines of the table; the others are added up in one."""

BAR: Final = 10
"""Width of the longest bar."""

MOST_BESIDE_BARS: Final = 2
"""Columns of names, and of tokens written to caches, that leave place for bars."""

_EIGHTHS = " ▏▎▍▌▋▊▉"

REFERENCE: Final = 8
"""Characters shown of the hash that stands for a customer or a tenant."""

_HASHED: Final = frozenset(("customer", "tenant"))

_NO_NAME: dict[Dimension, str] = {
    "feature": "no feature",
    "node": "no node",
    "model": "no model",
    "customer": "nobody",
    "tenant": "none",
}


def spend_screen(found: Spending, parts: Spending) -> RenderableType:
    """Return *found* as a table, and the feature in *parts* whose spend changed most."""
    period = _period_text(found.period)
    if not found.lines:
        return Text(f"No model call was recorded {period}.")
    rows: list[RenderableType] = [
        Text.assemble(("Spend ", "bold"), (period, "dim")),
        _table(found),
        *_unpriced(found),
        Text(f"→ {sentence(parts)}", style="bold"),
    ]
    return Padding(Group(*rows), (0, 1))


def _period_text(period: Period) -> str:
    since, until = (
        utc_text(each)[:19].replace("T", " ") for each in (period.since_us, period.until_us)
    )
    return f"from {since} to {until} UTC"


def _table(found: Spending) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim", expand=True)
    for each in found.by:
        if each in _HASHED:
            table.add_column(each, width=REFERENCE, overflow="fold")
        else:
            table.add_column(each, ratio=1, overflow="fold")
    total = Line(names=(), now=found.now, before=found.before)
    scale = _Scale(total, max(_weight(line, total) for line in found.lines), len(found.by))
    if scale.has_bars:
        table.add_column("", width=BAR, no_wrap=True, style="cyan")
    for name in scale.columns:
        table.add_column(name, justify="right", no_wrap=True)
    for line in found.lines[:SHOWN]:
        table.add_row(*map(_name, line.names, found.by), *scale.cells(line))
    blank = [""] * (len(found.by) - 1)
    if hidden := found.lines[SHOWN:]:
        rest = sum((line.now for line in hidden), Spent())
        before = sum((line.before for line in hidden), Spent())
        others = Line(names=(), now=rest, before=before)
        table.add_row(f"({len(hidden)} more)", *blank, *scale.cells(others))
    table.add_section()
    table.add_row("all", *blank, *scale.cells(total, is_total=True))
    return table


class _Scale:
    """
    The scale of a table: shares of one total, and one number of decimals.

    Attributes:
        has_bars: Whether lines have bars: not where many names need the place.
        columns: The heads of the figures.
    """

    def __init__(self, total: Line, most: float, names: int) -> None:
        self._total = total
        self._most = most
        self._decimals = decimals(max(total.now.cost_usd, total.before.cost_usd))
        self._has_writes = total.now.cache_write_tokens > 0
        self.has_bars = names + self._has_writes <= MOST_BESIDE_BARS
        written = ("written",) if self._has_writes else ()
        self.columns = ("share", "tokens", *written, "cost", "change")

    def cells(self, line: Line, *, is_total: bool = False) -> list[str | Text]:
        """Return the bar if there are any, and the figures of *line*."""
        weight, whole = _weight(line, self._total), _weight(self._total, self._total)
        share = weight / self._most if self._most and not is_total else 0.0
        written = f"{line.now.cache_write_tokens:,}" if line.now.cache_write_tokens else ""
        return [
            *([_bar(share)] if self.has_bars else []),
            f"{weight / whole:.0%}" if whole else "",
            f"{line.now.tokens:,}",
            *([written] if self._has_writes else []),
            "no price" if _is_unpriced(line) else self._usd(line.now.cost_usd),
            self._change(line),
        ]

    def _usd(self, amount: float) -> str:
        smallest = 10.0**-self._decimals
        if 0 < amount < smallest / 2:
            return f"<{smallest:.{self._decimals}f}"
        return f"${amount:,.{self._decimals}f}"

    def _change(self, line: Line) -> Text:
        before, change = line.before.cost_usd, line.change_usd
        if not self._total.before.calls:
            return Text("")
        if not line.before.calls:
            return Text("new", style="dim")
        if not before or not change:
            return Text(f"+{self._usd(change)}" if change else "=", style="dim")
        sign, style = ("+", "red") if change > 0 else ("-", "green")
        times = f"\N{MULTIPLICATION SIGN}{line.now.cost_usd / before:,.1f}"
        return Text(f"{sign}{self._usd(abs(change))} {times}", style=style)


def _weight(line: Line, total: Line) -> float:
    """Return the cost of *line*, or its tokens if no model has a price."""
    return line.now.cost_usd if total.now.cost_usd else float(line.now.tokens)


def _is_unpriced(line: Line) -> bool:
    return 0 < line.now.calls == line.now.unpriced_calls


def _bar(share: float) -> str:
    """Return a bar that is *share* of the longest one, to an eighth of a character."""
    eighths = round(share * BAR * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _unpriced(found: Spending) -> list[Text]:
    now = found.now
    if not now.unpriced_calls:
        return []
    return [
        Text(
            f"{now.unpriced_calls:,} of {now.calls:,} calls have no known price: their "
            f"{now.unpriced_tokens:,} tokens are counted, their cost is not.",
            style="yellow",
        )
    ]


def _name(name: str | None, dimension: Dimension) -> str:
    if name is None:
        return _NO_NAME[dimension]
    return name[:REFERENCE] if dimension in _HASHED else name


def as_document(found: Spending, parts: Spending) -> dict[str, Any]:
    """Return *found*, and the feature in *parts* whose spend changed most, for ``--json``."""
    moved = moved_most(parts)
    return {
        "since": utc_text(found.period.since_us),
        "until": utc_text(found.period.until_us),
        "before": utc_text(found.period.before_us),
        "by": list(found.by),
        "lines": [_document(line, found.by) for line in found.lines],
        "total": _figures(found.now),
        "total_before": _figures(found.before),
        "moved": _moved(moved) if moved else None,
        "said": sentence(parts),
    }


def _document(line: Line, by: tuple[Dimension, ...]) -> dict[str, Any]:
    named = zip(by, line.names, strict=True)
    names: dict[str, Any] = {each: _reference(name, each) for each, name in named}
    return {**names, **_figures(line.now), "before": _figures(line.before)}


def _moved(moved: TopMover) -> dict[str, Any]:
    figures = {"now": _figures(moved.now), "before": _figures(moved.before)}
    factor = moved.factor
    return asdict(moved) | figures | {"factor": None if factor is None else _exact(factor)}


def _figures(spent: Spent) -> dict[str, Any]:
    return asdict(spent) | {"cost_usd": _exact(spent.cost_usd)}


def _exact(amount: float) -> float:
    """Return *amount* without what adding up fractions has left behind its twelfth digit."""
    return float(f"{amount:.12g}")


def _reference(name: str | None, dimension: Dimension) -> str | None:
    return None if name is None else _name(name, dimension)


def write_csv(found: Spending, file: IO[str]) -> None:
    """Write *found* to *file*, with a header."""
    writer = csv.writer(file, lineterminator="\n")
    figures = list(asdict(found.now))
    writer.writerow([*found.by, *figures, *(f"before_{each}" for each in figures)])
    for line in found.lines:
        names = (_reference(name, each) for name, each in zip(line.names, found.by, strict=True))
        writer.writerow([*names, *_figures(line.now).values(), *_figures(line.before).values()])
