"""A scope's health as a table: the screen of ``mnemoscope doctor``, and its text."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

Row = tuple[str, str, str]
"""State, name and detail of a check."""

_WIDTH = 80
_STATES = {
    "ok": ("✓ ok", "green"),
    "warning": ("! warning", "yellow"),
    "failed": ("✗ failed", "bold red"),
    "off": ("- off", "dim"),
}


def health_screen(rows: Sequence[Row]) -> RenderableType:
    """Return a row for each check, and a verdict."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim", expand=True)
    table.add_column("state", no_wrap=True)
    table.add_column("check", no_wrap=True)
    table.add_column("detail", ratio=1, overflow="fold")
    for state, name, detail in rows:
        word, style = _STATES[state]
        table.add_row(Text(word, style=style), name, Text(detail))
    return Padding(Group(table, _verdict([state for state, _name, _detail in rows])), (0, 1))


def health_text(rows: Sequence[Row]) -> str:
    """Return the same in 80 columns, without colour."""
    console = Console(width=_WIDTH, file=StringIO(), color_system=None)
    with console.capture() as captured:
        console.print(health_screen(rows))
    lines = (line.rstrip() for line in captured.get().splitlines())
    return "\n".join(lines).strip("\n")


def _verdict(states: Sequence[str]) -> Text:
    failures, warnings = states.count("failed"), states.count("warning")
    if failures:
        return Text(f"Unhealthy: {failures} failed, {_warning_count(warnings)}.", style="bold red")
    return Text(f"Healthy, {_warning_count(warnings)}.", style="bold green")


def _warning_count(warnings: int) -> str:
    return f"{warnings or 'no'} warning{'' if warnings == 1 else 's'}"
