"""Plot the answers of the dashboard over ClickHouse: make clickhouse-picture ARGS="--events N"."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import clickhouse_connect
import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.dates import ConciseDateFormatter
from matplotlib.ticker import FuncFormatter, PercentFormatter

ROOT = Path(__file__).parents[1]
IMAGE = Path(__file__).with_name("images") / "dashboard-clickhouse.png"
sys.path.insert(0, str(ROOT))

from benchmarks.clickhouse import SINCE, UNTIL, fill  # noqa: E402 - of the checkout
from benchmarks.synthetic_events import ORIGIN  # noqa: E402
from tests.kit.clickhouse_panels import panel_queries  # noqa: E402

SHOWN = 6
"""Features, rows of tables, in a panel."""
LONG = 1e7
"""From here on in millions."""


def main() -> None:
    """Make the events, ask, and plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=3_000_000)
    parser.add_argument("--folder", type=Path, help="a ClickHouse that has them already")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="clickhouse-") as made:
        url = f"chdb://{given.folder or made}"
        fill(url, given.events)
        client = clickhouse_connect.get_client(dsn=url)
        queries = panel_queries(SINCE, UNTIL, [ORIGIN])
        answers = {title: client.query(sql).result_rows for title, sql in queries.items()}
        client.close()
    mpl.use("Agg")
    figure = plt.figure(figsize=(15, 10), layout="constrained")
    figure.suptitle("Audit copy", x=0.008, ha="left", fontweight="bold", fontsize=15)
    places = figure.subplot_mosaic("AABB;CCDD;EEEE")
    for place, (title, rows) in zip(places.values(), answers.items(), strict=True):
        place.set_title(title, loc="left", fontsize=11)
        _DRAWN[title](place, rows)
    figure.savefig(IMAGE, dpi=80)
    print(f"wrote {IMAGE.relative_to(ROOT)}")  # noqa: T201 - a script


def _series(rows: Iterable[Sequence[Any]]) -> dict[str, tuple[list[Any], list[float]]]:
    found: dict[str, tuple[list[Any], list[float]]] = {}
    for time, name, value in rows:
        times, values = found.setdefault(name, ([], []))
        times.append(time)
        values.append(value)
    return dict(sorted(found.items(), key=lambda each: -sum(each[1][1])))


def _time(place: Axes) -> None:
    place.xaxis.set_major_formatter(ConciseDateFormatter(place.xaxis.get_major_locator()))
    place.set_ylim(bottom=0)
    place.spines[["top", "right"]].set_visible(False)
    place.legend(fontsize=8, frameon=False, ncols=4, loc="upper left", bbox_to_anchor=(0, -0.08))


def _stacked(place: Axes, rows: Sequence[Sequence[Any]]) -> None:
    found = _series(rows)
    names = list(found)[:SHOWN]
    days, _values = found[names[0]]
    others = [0.0] * len(days)
    for name in list(found)[SHOWN:]:
        for at, value in zip(*found[name], strict=True):
            others[days.index(at)] += value
    amounts = [found[name][1] for name in names]
    place.stackplot(days, *amounts, others, labels=[*names, "all others"], alpha=0.8)
    place.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"${value:,.0f}"))
    _time(place)


def _lines(place: Axes, rows: Sequence[Sequence[Any]]) -> None:
    for name, (times, values) in sorted(_series(rows).items()):
        place.plot(times, values, label=name)
    _time(place)


def _shares(place: Axes, rows: Sequence[Sequence[Any]]) -> None:
    _lines(place, rows)
    place.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _table(place: Axes, rows: Sequence[Sequence[Any]], names: Sequence[str]) -> None:
    place.set_axis_off()
    cells = [[_cell(each) for each in row] for row in rows[:SHOWN]]
    table = place.table(cells, colLabels=list(names), loc="upper left", edges="horizontal")
    table.auto_set_font_size(value=False)
    table.set_fontsize(9)
    table.scale(1, 1.4)


def _cell(value: Any) -> str:
    if isinstance(value, (int, float)) and value >= LONG:
        return f"{value / 1e6:,.1f} M"
    if isinstance(value, (int, float)):
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    return str(value).removesuffix(":00")


_DRAWN = {
    "Cost of a day, by feature": _stacked,
    "Dearest nodes and models": lambda place, rows: _table(
        place, rows, ("feature", "node", "model", "calls", "input", "output", "unpriced", "cost $")
    ),
    "Empty searches, by store": _shares,
    "Top score, by store": _lines,
    "Hours unlike the others": lambda place, rows: _table(
        place,
        rows,
        ("hour", "agent", "operation", "measure", "calls", "value", "usual", "times usual"),
    ),
}


if __name__ == "__main__":
    main()
