"""Exit codes, the error that carries one, and the line that a command prints beside its output."""

from __future__ import annotations

import sys

UNHEALTHY, UNUSABLE, INCOMPLETE, USAGE, SEVERAL_PEOPLE, NOBODY_KNOWN = 1, 2, 3, 4, 5, 6
INTERRUPTED = 130
TAMPERED, LOSS = UNHEALTHY, UNUSABLE
"""The same codes as ``audit verify`` uses them."""

EXIT_CODES = {
    0: "Done, and all of it is well.",
    UNHEALTHY: "Unhealthy, or the audit trail was changed.",
    UNUSABLE: "A file cannot be used, or the audit trail declares a loss.",
    INCOMPLETE: "Incomplete, or there is no audit trail.",
    USAGE: "Wrong usage, or a setting that makes no sense. Nothing was done.",
    SEVERAL_PEOPLE: "Several people, or memories, have that id.",
    NOBODY_KNOWN: "Nobody, or no memory, is known by that id.",
    INTERRUPTED: "Interrupted.",
}
"""What each exit code means, of every command."""


class CommandError(Exception):
    """A user's mistake, told in one line."""

    def __init__(self, message: str, code: int = UNUSABLE) -> None:
        super().__init__(message)
        self.code = code


def say(line: str) -> None:
    """Print *line* on standard error, unwrapped and without markup."""
    print(line, file=sys.stderr)  # noqa: T201 - this is the one place
