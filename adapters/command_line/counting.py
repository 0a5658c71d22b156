"""A progress bar on standard error, where that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_STEP = 500
"""What is done between two looks at the bar, each of which takes a lock."""


@contextmanager
def counting(console: Console, what: str, total: int | None) -> Generator[Callable[[int], object]]:
    """
    Show a bar in the body, and return what moves it.

    Args:
        console: Where. Nothing is shown where it is no terminal.
        what: What is being done.
        total: How much of it there is, as far as is known; None: it is not.

    Returns:
        To be called with how much more is done.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    hidden = not console.is_terminal
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=hidden)
    waiting = 0

    def advance(done: int) -> None:
        nonlocal waiting
        waiting += done
        if waiting >= _STEP:
            bar.advance(task, waiting)
            waiting = 0

    with bar:
        task = bar.add_task(what, total=total)
        yield advance
