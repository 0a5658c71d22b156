"""The outcome of ``mnemoscope spend``: a table as wide as the screen, a sentence, JSON, or CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import IO, Any, Final

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...audit.queries.spending import Dimension, Line, Period, PeriodSpend, Spent
from ...audit.queries.top_mover import TopMover, moved_most, sentence
from ...telemetry.event.format import decimals
from ...telemetry.text import utc_text

SHOWN: Final = 20
"""Lines of the table; the others are added up in one."""

BAR: Final = 10
"""Width of the longest bar, where names leave so much."""

LEAST_BAR: Final = 4
"""Width of the longest bar below which there are none."""

_GAP, _EDGE = 2, 1
"""Characters beside each column, and before the first."""

_NARROWEST: Final = 4
_PART: Final = re.compile(r"[^/_.:\- ]*[/_.:\- ]*")
"""A part of a name, after which a reader expects it to be folded."""

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


def spend_screen(found: PeriodSpend, parts: PeriodSpend) -> RenderableType:
    """Return *found* as a table, and the feature in *parts* whose spend changed most."""
    period = _period_text(found.period)
    if not found.lines:
        return Text(f"No model call was recorded {period}.")
    rows: list[RenderableType] = [
        Text.assemble(("Spend ", "bold"), (period, "dim")),
        _SpendTable(found),
        *_unpriced(found),
        Text(f"→ {sentence(parts)}", style="bold"),
    ]
    return Padding(Group(*rows), (0, 1))


def _period_text(period: Period) -> str:
    since, until = (
        utc_text(each)[:19].replace("T", " ") for each in (period.since_us, period.until_us)
    )
    return f"from {since} to {until} UTC"


class _SpendTable:
    """The table of *found*, at the width that there is."""

    def __init__(self, found: PeriodSpend) -> None:
        self._found = found

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table."""
        yield _table(self._found, options.max_width)


def _table(found: PeriodSpend, width: int) -> Table:
    total = Line(names=(), now=found.now, before=found.before)
    # By the longest line and not by the total: one that has 3 % of it would have no bar.
    scale = _Scale(total, max(_weight(line, total) for line in found.lines))
    lines = [*found.lines[:SHOWN], *_others(found.lines[SHOWN:]), total]
    names = [_names(line, found) for line in lines]
    needed = [_width(column) for column in zip(found.by, *names, strict=True)]
    figures = [(*scale.columns,), *map(scale.cells, lines)]
    left = _left(width, figures) - _GAP * len(needed)
    # Bars are what is left over; names and figures come first.
    bar = min(BAR, left - sum(needed) - _GAP)
    widths = _shared(needed, left)
    if _is_cut(names, widths):  # shares say the least
        figures = [each[1:] for each in figures]
        widths = _shared(needed, _left(width, figures) - _GAP * len(needed))

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim")
    for each, its_width in zip(found.by, widths, strict=True):
        table.add_column(each, width=its_width, no_wrap=True)
    if bar >= LEAST_BAR:
        table.add_column("", width=bar, no_wrap=True, style="cyan")
    for head in figures[0]:
        table.add_column(head, justify="right", no_wrap=True)
    for line, of_line, cells in zip(lines, names, figures[1:], strict=True):
        if line is total:
            table.add_section()
        bars = [_bar(scale.share(line) * bar)] if bar >= LEAST_BAR else []
        table.add_row(*map(_folded, of_line, widths), *bars, *cells)
    return table


def _others(hidden: Sequence[Line]) -> list[Line]:
    """Return one line for all that are not shown, if there are any."""
    if not hidden:
        return []
    # So that the lines still add up to the total.
    now = sum((line.now for line in hidden), Spent())
    before = sum((line.before for line in hidden), Spent())
    return [Line(names=(f"({len(hidden)} more)",), now=now, before=before)]


def _names(line: Line, found: PeriodSpend) -> list[str]:
    """Return a name for each dimension. Sums have one, in the first."""
    if line in found.lines:
        return [_name(each, by) for each, by in zip(line.names, found.by, strict=True)]
    return [*(each or "" for each in line.names or ("all",)), *[""] * (len(found.by) - 1)]


def _width(cells: Sequence[str | Text]) -> int:
    return max(cell_len(str(each)) for each in cells)


def _left(width: int, figures: Sequence[Sequence[str | Text]]) -> int:
    """Return the width that figures leave."""
    return width - _EDGE - sum(_GAP + _width(column) for column in zip(*figures, strict=True))


def _is_cut(names: Sequence[Sequence[str]], widths: Sequence[int]) -> bool:
    """Return whether a name has a part that is longer than the width of its column."""
    return any(
        cell_len(part) > width
        for of_line in names
        for name, width in zip(of_line, widths, strict=True)
        for part in _PART.findall(name)
    )


def _shared(needed: Sequence[int], left: int) -> list[int]:
    """Return the widths of columns that need so much: the widest give way until all fit."""
    widths = list(needed)
    while sum(widths) > left and max(widths) > _NARROWEST:
        # One character at a time: wide columns become equal before any becomes narrow.
        widths[widths.index(max(widths))] -= 1
    return widths


def _folded(name: str, width: int) -> str:
    """Return *name* in lines of *width*, each of whole parts where these are no longer."""
    lines = [""]
    for part in _PART.findall(name):
        if cell_len(lines[-1] + part) > width and lines[-1]:
            lines.append("")
        lines[-1:] = chop_cells(lines[-1] + part, width) or [""]
    return "\n".join(lines)


class _Scale:
    """
    The scale of a table: shares of one total, and one number of decimals.

    Attributes:
        columns: The heads of the figures.
    """

    def __init__(self, total: Line, most: float) -> None:
        self._total = total
        self._most = most
        self._decimals = decimals(max(total.now.cost_usd, total.before.cost_usd))
        self._has_writes = total.now.cache_write_tokens > 0
        written = ("written",) if self._has_writes else ()
        self.columns = ("share", "tokens", *written, "cost", "change")

    def share(self, line: Line) -> float:
        """Return the share of *line* in the most that one of them has. The total has no bar."""
        if not self._most or line is self._total:
            return 0.0
        return min(1.0, _weight(line, self._total) / self._most)

    def cells(self, line: Line) -> Sequence[str | Text]:
        """Return the figures of *line*."""
        weight, whole = _weight(line, self._total), _weight(self._total, self._total)
        written = f"{line.now.cache_write_tokens:,}" if line.now.cache_write_tokens else ""
        return [
            f"{weight / whole:.0%}" if whole else "",
            f"{line.now.tokens:,}",
            *([written] if self._has_writes else []),
            "no price"
            if 0 < line.now.calls == line.now.unpriced_calls
            else self._usd(line.now.cost_usd),
            self._change(line),
        ]

    def _usd(self, amount: float) -> str:
        smallest = 10.0**-self._decimals
        # It would be shown as nothing, which it is not.
        if 0 < amount < smallest / 2:
            return f"<{smallest:.{self._decimals}f}"
        return f"${amount:,.{self._decimals}f}"

    def _change(self, line: Line) -> Text:
        before, change = line.before.cost_usd, line.change_usd
        # Nothing was recorded before at all: each line would be "new".
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


def _bar(width: float) -> str:
    """Return a bar of *width*, to an eighth of a character."""
    eighths = round(width * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _unpriced(found: PeriodSpend) -> list[Text]:
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
    # Enough to tell them apart in a table, and to look them up with.
    return name[:REFERENCE] if dimension in _HASHED else name


def as_document(found: PeriodSpend, parts: PeriodSpend) -> dict[str, Any]:
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


def write_csv(found: PeriodSpend, file: IO[str]) -> None:
    """Write *found* to *file*, with a header."""
    # Not the format's own CRLF, which `cut` and `awk` leave in the last column.
    writer = csv.writer(file, lineterminator="\n")
    figures = list(asdict(found.now))
    writer.writerow([*found.by, *figures, *(f"before_{each}" for each in figures)])
    for line in found.lines:
        names = (_reference(name, each) for name, each in zip(line.names, found.by, strict=True))
        writer.writerow([*names, *_figures(line.now).values(), *_figures(line.before).values()])
