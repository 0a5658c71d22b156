"""Exit codes, the error that carries one, and the line that a command prints beside its output."""

from __future__ import annotations

from rich.console import Console

UNHEALTHY, UNUSABLE, INCOMPLETE, USAGE, SEVERAL_PEOPLE, NOBODY_KNOWN = 1, 2, 3, 4, 5, 6
INTERRUPTED = 130
TAMPERED, LOSS = UNHEALTHY, UNUSABLE
"""The same codes as ``audit verify`` uses them."""


class CommandError(Exception):
    """
    A user's mistake, told in one line.

    Attributes:
        code: The exit code.
    """

    def __init__(self, message: str, code: int = UNUSABLE) -> None:
        super().__init__(message)
        self.code = code


def say(line: str) -> None:
    """Print *line* on standard error, unwrapped and without markup."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(line, markup=False)
