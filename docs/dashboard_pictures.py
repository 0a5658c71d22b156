"""
Plot the dashboards from a real Prometheus over real traffic: make dashboard-pictures ARGS="NAME …".

Grafana is not needed: each picture has a dashboard's main panels, with their queries, titles and
units. For the overview Qdrant turns slow, and nothing else happens; for the others every kind of
failure is injected besides.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, FuncFormatter, PercentFormatter

ROOT = Path(__file__).parents[1]
GRAFANA, IMAGES = ROOT / "grafana", Path(__file__).with_name("images")
sys.path.insert(0, str(GRAFANA))

from history import spend_history  # noqa: E402 - the folder is no package
from rehearsal import Program, Rehearsal, RehearsalError, free_port  # noqa: E402

SECONDS = 150
SLOW_AFTER_S = SECONDS // 3
VARIABLES = {
    "$__rate_interval": "10s",
    "$__range": "60s",
    "$environment": ".*",
    "$service": ".*",
    "$job": ".*",
    "$instance": ".*",
    "$store": ".*",
    "$feature": ".*",
}
PANELS: Mapping[str, Sequence[str]] = {
    "overview": (
        "The culprit of this window",
        "Seconds waited, by store",
    ),
    "spend": (
        "Cost by feature",
        "This hour, yesterday's, last week's",
        "Budgets used",
        "Tokens by node",
        "Cached share of the input",
        "Time to first token",
    ),
    "privacy": (
        "Redactions by entity",
        "Writes refused",
        "Tenancy tripwire",
        "Events recorded",
        "Audit lag",
        "Age of the signed checkpoint",
    ),
    "self": (
        "Added latency",
        "What an exit would take now",
        "Sinks",
        "Events delivered",
        "Errors of our own",
        "Queued events",
    ),
}
ONE_STORY = {"overview": "Qdrant turns slow"}
"""Pictures of one thing that happens, and what that is."""
COLUMNS, STATES = 3, 6
LEGEND, LONG_NAME = 4, 24
"""Series in a legend, and the length from which a name takes a line of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line: its name and its points, in seconds from the start."""

    name: str
    at_s: list[float]
    values: list[float]


def main() -> int:
    """Run the stack, plot, and return the exit code."""
    try:
        wanted = sys.argv[1:] or PANELS
        for names, incidents in (
            ([name for name in wanted if name in ONE_STORY], []),
            ([name for name in wanted if name not in ONE_STORY], ["--incidents"]),
        ):
            if names:
                with TemporaryDirectory(prefix="mnemoscope-pictures-") as folder:
                    _draw(Path(folder), names, incidents)
    except RehearsalError as exc:
        print(f"dashboard-pictures: {exc}", file=sys.stderr)  # noqa: T201 - a script
        return 2
    return 0


def _draw(folder: Path, names: Sequence[str], incidents: Sequence[str]) -> None:
    port = free_port()
    environment = os.environ | {
        "MNEMOSCOPE_SINKS": "otlp,prometheus,logs,audit",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}",  # nothing listens there
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "HOME": str(folder),
    }
    script = [sys.executable, "-W", "ignore", str(GRAFANA / "traffic.py"), "--port", str(port)]
    slow = ["--pause", "0.1", "--slow", "qdrant", "--after", str(SLOW_AFTER_S)]
    traffic = Program(
        "traffic", [*script, *slow, *incidents], port=port, folder=folder, environment=environment
    )
    history = spend_history(time.time())
    print(f"rehearsing for {SECONDS} s")  # noqa: T201 - a script
    with traffic, Rehearsal(folder, {"demo": port}, history=history) as running:
        time.sleep(SECONDS)
        for name in names:
            _picture(running, name, PANELS[name])


def _picture(running: Rehearsal, name: str, titles: Sequence[str]) -> None:
    board = json.loads((GRAFANA / "dashboards" / f"{name}.json").read_text())
    panels = {panel["title"]: panel for panel in board["panels"]}
    wanted = [panels[title] for title in titles]
    drawn = [(panel, found) for panel in wanted if (found := _found(panel, running))]
    columns = min(COLUMNS, len(drawn))
    rows = -(-len(drawn) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(5 * columns, 3.6 * rows), layout="constrained", squeeze=False
    )
    for place, (panel, found) in zip(axes.flat, drawn, strict=False):
        _panel(place, panel, found)
    figure.suptitle(
        ": ".join(
            filter(None, (board["title"].removeprefix("mnemoscope / "), ONE_STORY.get(name)))
        ),
        x=0.008,
        ha="left",
        fontweight="bold",
        fontsize=15,
    )
    figure.savefig(IMAGES / f"dashboard-{name}.png", dpi=80)
    plt.close(figure)
    print(f"wrote docs/images/dashboard-{name}.png")  # noqa: T201 - a script


def _found(panel: Any, running: Rehearsal) -> list[Series]:
    return [series for target in panel["targets"] for series in _queried(running, target)]


def _panel(place: Axes, panel: Any, series: Sequence[Series]) -> None:
    place.set_title(panel["title"].replace("$store", "all stores"), loc="left", fontsize=11)
    draw = {"heatmap": _heat, "stat": _stat, "state-timeline": _states}.get(panel["type"], _lines)
    draw(place, series, panel)


def _queried(running: Rehearsal, target: Any) -> list[Series]:
    expr = target["expr"]
    for variable, value in VARIABLES.items():
        expr = expr.replace(variable, value)
    now = time.time()
    start = now if target.get("instant") else now - SECONDS
    found = running.ask("query_range", query=expr, start=start, end=now, step=2)["result"]
    return [
        Series(
            name=_named(target.get("legendFormat", ""), each["metric"]),
            at_s=[float(at) - now + SECONDS for at, value in each["values"] if value != "NaN"],
            values=[float(value) for _at, value in each["values"] if value != "NaN"],
        )
        for each in found
        if any(value != "NaN" for _at, value in each["values"])
    ]


def _named(legend: str, labels: Mapping[str, str]) -> str:
    for name, value in labels.items():
        legend = legend.replace(f"{{{{{name}}}}}", value)
    return legend


def _lines(place: Axes, series: Sequence[Series], panel: Any) -> None:
    ordered = sorted(series, key=lambda each: -max(each.values))
    columns = 1 if max(len(each.name) for each in ordered[:LEGEND]) > LONG_NAME else 2
    for rank, each in enumerate(ordered):
        label = each.name if rank < LEGEND else None  # the rest are drawn without
        place.plot(each.at_s, each.values, linewidth=1.4, label=label)
    place.yaxis.set_major_formatter(_format(panel["fieldConfig"]["defaults"]["unit"]))
    place.set_ylim(bottom=0)
    _time(place)
    if series:
        below = {"loc": "upper left", "bbox_to_anchor": (-0.02, -0.09)}
        legend = place.legend(fontsize=8, frameon=False, ncols=columns, columnspacing=1.2, **below)
        legend.set_in_layout(False)  # long names would squeeze the panels


def _heat(place: Axes, series: Sequence[Series], panel: Any) -> None:
    finite = (each for each in series if each.name != "+Inf")
    buckets = sorted(finite, key=lambda each: float(each.name))
    below = [0.0] * len(buckets[0].values)
    rows: list[list[float]] = []
    for each in buckets:
        rows.append([now - before for now, before in zip(each.values, below, strict=True)])
        below = each.values
    place.imshow(
        rows, aspect="auto", origin="lower", cmap="Oranges", extent=(0, SECONDS, 0, len(rows))
    )
    unit = panel["fieldConfig"]["defaults"]["unit"]
    shown = range(0, len(buckets), 3)
    place.set_yticks([row + 0.5 for row in shown])
    place.set_yticklabels([_said(float(buckets[row].name), unit) for row in shown])
    _time(place)


def _stat(place: Axes, series: Sequence[Series], panel: Any) -> None:
    unit = panel["fieldConfig"]["defaults"]["unit"]
    place.set_axis_off()
    place.set_title(
        panel["title"].replace("this window", "the last minute"), loc="left", fontsize=11
    )
    for each in series:
        place.text(0.5, 0.62, each.name, ha="center", va="center", fontsize=26, color="#c4162a")
        place.text(0.5, 0.32, _said(each.values[-1], unit), ha="center", va="center", fontsize=22)


def _states(place: Axes, series: Sequence[Series], panel: Any) -> None:
    (mapping,) = panel["fieldConfig"]["defaults"]["mappings"]
    states = {float(value): shown for value, shown in mapping["options"].items()}
    told = [each for each in series if any(each.values) or len(series) <= STATES]
    for row, each in enumerate(told):
        for at, value in zip(each.at_s, each.values, strict=True):
            place.barh(row, 2.2, left=at, color=_COLOURS[states[value]["color"]], height=0.7)
    place.set_yticks(range(len(told)), [each.name for each in told], fontsize=9)
    for shown in states.values():
        place.barh(0, 0, color=_COLOURS[shown["color"]], label=shown["text"])
    place.legend(fontsize=8, loc="upper left", ncols=len(states))
    place.set_ylim(-0.6, len(told) + 0.4)
    _time(place)


def _time(place: Axes) -> None:
    place.set_xlim(0, SECONDS)
    place.set_xlabel(" \n" * 4, fontsize=8)  # room for the legend
    place.xaxis.set_major_formatter(EngFormatter("s"))
    for edge in ("top", "right"):
        place.spines[edge].set(visible=False)


def _format(unit: str) -> Any:
    formats = {
        "s": EngFormatter("s"),
        "percentunit": PercentFormatter(1.0, decimals=0),
        "currencyUSD": FuncFormatter(lambda value, _place: f"${value:,.3g}"),
        "ops": EngFormatter("/s"),
    }
    return formats.get(unit, EngFormatter())


def _said(value: float, unit: str) -> str:
    # A formatter of matplotlib's wants an axis, which a single figure has not.
    if unit == "percentunit":
        return f"{value:.0%}"
    return f"${value:,.3g}" if unit == "currencyUSD" else EngFormatter(_SUFFIX.get(unit, ""))(value)


_SUFFIX = {"s": "s", "ops": "/s"}
_COLOURS = {"green": "#73bf69", "orange": "#ff9830", "red": "#e02f44"}


if __name__ == "__main__":
    mpl.use("Agg")
    raise SystemExit(main())
