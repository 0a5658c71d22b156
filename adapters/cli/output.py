"""What a command prints: JSON for programs, and tables that fit 80 columns for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table

from ...telemetry.text import json_text, utc_text

if TYPE_CHECKING:
    from ...audit.record.rows import AuditRow


def print_json(document: Any) -> None:
    """Print *document* as JSON; what JSON cannot hold costs its own place alone."""
    Console().print_json(json_text(document))


def print_answer(document: Any, screen: RenderableType, *, json: bool) -> None:
    """Print *document* as JSON, or else *screen*."""
    Console().print_json(json_text(document)) if json else Console().print(screen)


def fields(of: object, names: str) -> dict[str, Any]:
    """Return the attributes of *of* by *names*, which spaces part: a document is made of them."""
    return {name: getattr(of, name) for name in names.split()}


def table(
    *heads: str, rows: Iterable[Sequence[RenderableType]] = (), figures: int = 0, **more: Any
) -> Table:
    """
    Return a table whose texts fold, and whose last columns are whole, and to the right.

    Args:
        heads: The heads of its columns.
        rows: A cell for each head.
        figures: How many of the columns are figures.
        more: As rich's table takes it.
    """
    made = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim", **more)
    for place, head in enumerate(heads, figures - len(heads)):
        if place >= 0:
            made.add_column(head, justify="right", no_wrap=True)
        else:
            made.add_column(head, overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def done_by(row: AuditRow, run_name: Callable[[str], str] = str) -> str:
    """Return when an operation was, and by which agent, for which feature and in which run."""
    parts = [
        day_time(row.occurred_us),
        f"by {row.agent}" if row.agent else "",
        f"({row.feature})" if row.feature else "",
        f"in {run_name(row.run)}" if row.run else "",
    ]
    return " ".join(filter(None, parts))


def day_time(micros: int) -> str:
    """Return a time, microseconds since 1970, as day of the year and time of day in UTC."""
    return utc_text(micros)[5:19].replace("T", " ")


def minute(micros: int) -> str:
    """Return a time, microseconds since 1970, to the minute in UTC, without saying so."""
    return utc_text(micros)[:16].replace("T", " ")
