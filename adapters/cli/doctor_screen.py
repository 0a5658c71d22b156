"""The checks of ``mnemoscope doctor`` as a table of 80 columns."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...memory.health.model import Health, State

_STATES = {
    State.OK: ("✓ ok", "green"),
    State.WARNING: ("! warning", "yellow"),
    State.FAILED: ("✗ failed", "bold red"),
    State.OFF: ("- off", "dim"),
}


def health_screen(health: Health) -> RenderableType:
    """Return a row for each check, and a verdict."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim", expand=True)
    table.add_column("state", no_wrap=True)
    table.add_column("check", no_wrap=True)
    table.add_column("detail", ratio=1, overflow="fold")
    for each in health.checks:
        word, style = _STATES[each.state]
        table.add_row(Text(word, style=style), each.name, Text(each.detail))
    return Padding(Group(table, _verdict(health)), (0, 1))


def _verdict(health: Health) -> Text:
    states = [each.state for each in health.checks]
    failures, warnings = states.count(State.FAILED), states.count(State.WARNING)
    if failures:
        return Text(f"Unhealthy: {failures} failed, {_warning_count(warnings)}.", style="bold red")
    return Text(f"Healthy, {_warning_count(warnings)}.", style="bold green")


def _warning_count(warnings: int) -> str:
    return f"{warnings or 'no'} warning{'' if warnings == 1 else 's'}"
