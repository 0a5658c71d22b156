"""How a command ends: its exit code, and one line for a person."""

from __future__ import annotations

from rich.console import Console

UNHEALTHY, UNUSABLE, INCOMPLETE, USAGE, INTERRUPTED = 1, 2, 3, 4, 130
TAMPERED, LOSS = UNHEALTHY, UNUSABLE
"""What the codes mean to ``audit verify``."""


class CommandError(Exception):
    """A user's mistake: one line for a person and an exit code."""

    def __init__(self, message: str, code: int = UNUSABLE) -> None:
        super().__init__(message)
        self.code = code


def say(line: str) -> None:
    """Print *line* on standard error, as it is."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(line, markup=False)
