"""What ``mnemoscope spend`` found, as a person reads it: a table of 80 columns, and a sentence."""

from __future__ import annotations

import sys
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...audit.spending import Dimension, Line, Period, Spending, Spent
from ...telemetry.amounts import decimals
from ...telemetry.text import utc_text
from .bill import Bill, SpendOptions
from .bill_document import as_document, name_of, write_csv

SHOWN: Final = 20
"""Lines of the table; the rest is added up in one."""

BAR: Final = 10
"""Width of the longest bar."""

_EIGHTHS = " ▏▎▍▌▋▊▉"


def show(told: Bill, options: SpendOptions, console: Console) -> None:
    """Print it: as a table, as JSON or as CSV."""
    if options.json:
        console.print_json(data=as_document(told))
    elif options.csv:
        write_csv(told.found, sys.stdout)
    elif not told.found.lines:
        console.print(Text(f"No model call was recorded {when(told.found.period)}."))
    else:
        console.print(screen(told))


def screen(told: Bill) -> RenderableType:
    """Return the table, what it leaves out, and the answer. Fits 80 columns."""
    found = told.found
    parts: list[RenderableType] = [
        Text.assemble(("Spend ", "bold"), (when(found.period), "dim")),
        table_of(found),
        *_without_price(found),
        Text(f"→ {told.said}", style="bold"),
    ]
    return Padding(Group(*parts), (0, 1))


def when(period: Period) -> str:
    """Say from when to when."""
    since, until = (
        utc_text(each)[:19].replace("T", " ") for each in (period.since_us, period.until_us)
    )
    return f"from {since} to {until} UTC"


def table_of(found: Spending) -> Table:
    """Return the lines as a table, dearest first, with bars, shares and changes."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim", expand=True)
    table.add_column("\n".join(found.by), ratio=1, overflow="fold")
    table.add_column("", width=BAR, no_wrap=True, style="cyan")
    for name in ("share", "tokens", "cost", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    total = Line(names=(), now=found.now, before=found.before)
    scale = _Scale(total, max(_weight(line, total) for line in found.lines))
    for line in found.lines[:SHOWN]:
        table.add_row(names_of(line, found.by), *scale.cells(line))
    if hidden := found.lines[SHOWN:]:
        rest = sum((line.now for line in hidden), Spent())
        before = sum((line.before for line in hidden), Spent())
        table.add_row(
            f"({len(hidden)} more)", *scale.cells(Line(names=(), now=rest, before=before))
        )
    table.add_section()
    table.add_row("all", "", *scale.cells(total)[1:])
    return table


def names_of(line: Line, by: tuple[Dimension, ...]) -> Text:
    """Return what a line is about: a name, and below it those of further dimensions."""
    first, *others = map(name_of, line.names, by)
    return Text.assemble(first, *((f"\n  {name}", "dim") for name in others))


class _Scale:
    """How amounts are shown beside one another: shares of one total, and as many decimals."""

    def __init__(self, total: Line, most: float) -> None:
        self._total = total
        self._most = most
        self._decimals = decimals(max(total.now.cost_usd, total.before.cost_usd))

    def cells(self, line: Line) -> tuple[str | Text, ...]:
        """Return the bar, share, tokens, cost and change of *line*."""
        weight, whole = _weight(line, self._total), _weight(self._total, self._total)
        return (
            bar(weight / self._most if self._most else 0.0),
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
    """Return what bars and shares show: cost, or tokens where no model has a price."""
    return line.now.cost_usd if total.now.cost_usd else float(line.now.tokens)


def _is_unpriced(line: Line) -> bool:
    return 0 < line.now.calls == line.now.unpriced_calls


def bar(share: float) -> str:
    """Return a bar that is *share* of the longest, to an eighth of a character."""
    eighths = round(share * BAR * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _without_price(found: Spending) -> list[Text]:
    now = found.now
    if not now.unpriced_calls:
        return []
    return [
        Text(
            f"{now.unpriced_calls:,} of {now.calls:,} calls have no known cost: their "
            f"{now.unpriced_tokens:,} tokens are counted, and the cost is not in the sums.",
            style="yellow",
        )
    ]
