"""
The fault list as a table: what was injected, what should happen, what was seen, what it cost.

A test names its fault with ``@pytest.mark.fault(7, "throttled", expected="…")`` and says what it
saw through the `seen` fixture. ``pytest tests/faults --fault-table`` prints the table in the end.
"""

from __future__ import annotations

import platform
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

WAITING: dict[str, tuple[str, str, str]] = {
    "12": (
        "UDP port closed, UDS buffer full",
        "dropped, never blocking",
        "no sink sends datagrams",
    ),
}
"""Faults without a test here: name, expected, and where they are instead or why they are not."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our two options."""
    group = parser.getgroup("faults")
    group.addoption("--fault-table", action="store_true", help="print the table of faults")
    group.addoption("--fault-page", metavar="FILE", help="write the table as Markdown")
    group.addoption("--full-faults", action="store_true", help="inject at full size and length")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers", "fault(number, name, expected): the fault that the test injects"
    )


class Seen:
    """What a test saw of its fault. Call it with a sentence."""

    def __init__(self, record: dict[str, Any]) -> None:
        self._record = record

    def __call__(self, *told: object) -> None:
        """Add to what is printed under ``seen``."""
        self._record["seen"] = ", ".join(map(str, [*filter(None, [self._record["seen"]]), *told]))

    def added(self, seconds: Sequence[float]) -> float:
        """Record what calls took more than without us; returns the median in seconds."""
        ordered = sorted(seconds)
        median = statistics.median(ordered)
        p99 = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
        self._record["added"] = f"{median * 1e6:,.0f} / {p99 * 1e6:,.0f} µs"
        return median


@pytest.fixture(autouse=True)
def _fault_record(request: pytest.FixtureRequest) -> dict[str, Any] | None:
    mark = request.node.get_closest_marker("fault")
    if mark is None:
        return None
    number, name = mark.args
    record = {"number": number, "name": name, **mark.kwargs, "seen": "", "added": ""}
    # Carried from the workers of xdist to the process that prints.
    request.node.user_properties.append(("fault", record))
    return record


@pytest.fixture
def seen(_fault_record: dict[str, Any]) -> Seen:
    """Return where a test says what it saw."""
    return Seen(_fault_record)


@pytest.fixture
def full(pytestconfig: pytest.Config) -> bool:
    """Return whether faults are injected at full size and length."""
    return bool(pytestconfig.getoption("--full-faults"))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the table, and write it, where that is asked for."""
    shown, page = config.getoption("--fault-table"), config.getoption("--fault-page")
    if not (shown or page):
        return
    rows = _rows(terminalreporter)
    if shown:
        _print(rows)
    if page:
        Path(page).write_text(_page(rows), encoding="utf-8")


def _rows(terminalreporter: Any) -> list[tuple[str, ...]]:
    rows: dict[tuple[int, str], tuple[str, ...]] = {}
    for outcome in ("passed", "skipped", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            if report.when == "call" or outcome == "skipped":
                for record in (each for name, each in report.user_properties if name == "fault"):
                    key = (record["number"], record["name"])
                    rows[key] = _row(record, outcome, rows.get(key))
    told = {number for number, _name in rows}
    for numbers, (name, expected, where) in WAITING.items():
        if _first(numbers) not in told:
            rows[_first(numbers), name] = (numbers, "[yellow]-", name, expected, where, "")
    return [row for _key, row in sorted(rows.items())]


def _first(numbers: str) -> int:
    return int(numbers.partition("-")[0])


_AS = {"passed": "as expected", "failed": "not that", "skipped": ""}


def _row(record: dict[str, Any], outcome: str, before: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the row of a fault, with what its earlier variants saw."""
    sign = {"passed": "[green]✓", "failed": "[red]✗"}.get(outcome, "[yellow]skipped")
    seen, added = record["seen"] or _AS[outcome], record["added"]
    if before is not None and before[4] != seen:
        seen = "\n".join(filter(None, [before[4], seen]))
        added = "\n".join(filter(None, [before[5], added]))
    return (str(record["number"]), sign, record["name"], record["expected"], seen, added)


def _print(rows: list[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Faults injected", show_lines=False, row_styles=["", "dim"])
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("fault", ratio=3)
    table.add_column("expected", ratio=4)
    table.add_column("seen", ratio=5)
    table.add_column("added p50 / p99", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console()
    Console(width=None if console.is_terminal else 170).print(table)


_PAGE = """# Faults that do not hurt the host

Written by `make faults` on {machine}. Each line is a test of
[`tests/faults`](../tests/faults), or of the suite that the line names. The oracle is one for all.
The agent gets the store's own answer, or the documented neutral one. Every event is accounted for.
The process ends in time, and no thread, file or process is left behind. *Added* is what a call took
more than the bare one while the fault lasted, median and 99th percentile, on a machine that was
doing other work. Read its order of magnitude.

| # | | fault | expected | seen | added p50 / p99 |
|---|---|---|---|---|---|
{lines}
"""


def _page(rows: list[tuple[str, ...]]) -> str:
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return _PAGE.format(machine=machine, lines="\n".join(map(_line, rows)))


def _line(row: tuple[str, ...]) -> str:
    number, sign, *texts = row
    cells = [number, sign.rpartition("]")[2], *texts]
    return (
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", "<br>") for cell in cells) + " |"
    )
