"""A progress bar on standard error, where that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_STEP = 500
"""Items counted between two updates of the bar, each of which takes a lock."""


@contextmanager
def progress_bar(
    console: Console, description: str, total: int | None
) -> Generator[Callable[[int], object]]:
    """
    Show a bar while the body runs, and return the function that advances it.

    Args:
        console: Nothing is shown unless it is a terminal.
        description: The work, as a participle.
        total: Expected number of items. None: unknown.

    Returns:
        Takes the number of items done since the last call.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    # In a file or a log each update would be a line.
    hidden = not console.is_terminal
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=hidden)
    uncounted = 0

    def advance(done: int) -> None:
        nonlocal uncounted
        uncounted += done
        if uncounted >= _STEP:
            bar.advance(task, uncounted)
            uncounted = 0

    with bar:
        task = bar.add_task(description, total=total)
        yield advance
