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
from ...audit.queries.top_mover import moved_most, sentence
from ...telemetry.event.format import decimals
from ...telemetry.event.text import utc_text

SHOWN: Final = 20
"""Lines of the table; the others are added up in one."""

BAR: Final = 10
"""Width of the longest bar."""

_EIGHTHS = " ▏▎▍▌▋▊▉"

REFERENCE: Final = 8
"""Characters shown of the hash that stands for a customer."""

_NO_NAME: dict[Dimension, str] = {
    "feature": "no feature",
    "node": "no node",
    "model": "no model",
    "customer": "no customer",
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
    table.add_column("\n".join(found.by), ratio=1, overflow="fold")
    table.add_column("", width=BAR, no_wrap=True, style="cyan")
    for name in ("share", "tokens", "cost", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    total = Line(names=(), now=found.now, before=found.before)
    scale = _Scale(total, max(_weight(line, total) for line in found.lines))
    for line in found.lines[:SHOWN]:
        table.add_row(_names(line, found.by), *scale.cells(line))
    if hidden := found.lines[SHOWN:]:
        rest = sum((line.now for line in hidden), Spent())
        before = sum((line.before for line in hidden), Spent())
        table.add_row(
            f"({len(hidden)} more)", *scale.cells(Line(names=(), now=rest, before=before))
        )
    table.add_section()
    table.add_row("all", "", *scale.cells(total)[1:])
    return table


def _names(line: Line, by: tuple[Dimension, ...]) -> Text:
    """Return the name of the first dimension, and below it those of the others."""
    first, *others = map(_name, line.names, by)
    return Text.assemble(first, *((f"\n  {name}", "dim") for name in others))


class _Scale:
    """The scale of a table: shares of one total, and one number of decimals."""

    def __init__(self, total: Line, most: float) -> None:
        self._total = total
        self._most = most
        self._decimals = decimals(max(total.now.cost_usd, total.before.cost_usd))

    def cells(self, line: Line) -> tuple[str | Text, ...]:
        """Return the bar, share, tokens, cost and change of *line*."""
        weight, whole = _weight(line, self._total), _weight(self._total, self._total)
        return (
            _bar(weight / self._most if self._most else 0.0),
            f"{weight / whole:.0%}" if whole else "",
            f"{line.now.tokens:,}",
            "no price" if _is_unpriced(line) else self._usd(line.now.cost_usd),
            self._change(line),
        )

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
    return name[:REFERENCE] if dimension == "customer" else name


def as_document(found: Spending, parts: Spending) -> dict[str, Any]:
    """Return *found*, and the feature in *parts* whose spend changed most, for ``--json``."""
    moved = moved_most(parts)
    return {
        "since": utc_text(found.period.since_us),
        "until": utc_text(found.period.until_us),
        "before": utc_text(found.period.before_us),
        "by": list(found.by),
        "lines": [_document(line, found.by) for line in found.lines],
        "total": asdict(found.now),
        "total_before": asdict(found.before),
        "moved": asdict(moved) | {"factor": moved.factor} if moved else None,
        "said": sentence(parts),
    }


def _document(line: Line, by: tuple[Dimension, ...]) -> dict[str, Any]:
    named = zip(by, line.names, strict=True)
    names: dict[str, Any] = {each: _reference(name, each) for each, name in named}
    return {**names, **asdict(line.now), "before": asdict(line.before)}


def _reference(name: str | None, dimension: Dimension) -> str | None:
    return None if name is None else _name(name, dimension)


def write_csv(found: Spending, file: IO[str]) -> None:
    """Write *found* to *file*, with a header."""
    writer = csv.writer(file, lineterminator="\n")
    figures = list(asdict(found.now))
    writer.writerow([*found.by, *figures, *(f"before_{each}" for each in figures)])
    for line in found.lines:
        names = (_reference(name, each) for name, each in zip(line.names, found.by, strict=True))
        writer.writerow([*names, *asdict(line.now).values(), *asdict(line.before).values()])
