"""The exceptions that are a user's mistake or a file's fault: a line, and an exit code."""

from __future__ import annotations

from collections.abc import Iterator

from ...audit.database.errors import (
    AmbiguousMemoryError,
    AmbiguousSubjectError,
    AuditError,
    DatabaseMissingError,
    TamperedError,
    UnknownMemoryError,
    UnknownSubjectError,
    UnknownTenantError,
)
from ...memory.errors import ConfigurationError, MnemoscopeError, ScopeError
from .exit_codes import (
    INCOMPLETE,
    NOBODY_KNOWN,
    SEVERAL_PEOPLE,
    TAMPERED,
    UNUSABLE,
    USAGE,
    CommandError,
    say,
)
from .person_options import ambiguous_lines, unknown_lines

_CODES: dict[type[Exception], int] = {
    ConfigurationError: USAGE,
    ScopeError: USAGE,
    AmbiguousSubjectError: SEVERAL_PEOPLE,
    DatabaseMissingError: INCOMPLETE,
    TamperedError: TAMPERED,
    UnknownSubjectError: NOBODY_KNOWN,
    UnknownTenantError: NOBODY_KNOWN,
    AmbiguousMemoryError: SEVERAL_PEOPLE,
    UnknownMemoryError: NOBODY_KNOWN,
    MnemoscopeError: UNUSABLE,
    AuditError: UNUSABLE,
    OSError: UNUSABLE,
    UnicodeError: USAGE,
}
"""The first that fits counts."""


def report_mistake(exc: Exception) -> int | None:
    """Tell of *exc* on standard error and return the exit code; None: it is a fault of ours."""
    code = _code(exc)
    if code is not None:
        say(f"mnemoscope: {_one_line(exc)}")
        for line in _more(exc):
            say(line)
    return code


def _code(exc: Exception) -> int | None:
    if isinstance(exc, CommandError):
        return exc.code
    return next((code for kind, code in _CODES.items() if isinstance(exc, kind)), None)


def _one_line(exc: Exception) -> str:
    if isinstance(exc, UnicodeError):
        return "something that was given is not UTF-8 text"
    if isinstance(exc, OSError) and exc.strerror:
        # Without its number, which `str` puts first.
        return f"{exc.filename}: {exc.strerror}" if exc.filename else exc.strerror
    return " ".join(str(exc).split())


def _more(exc: Exception) -> Iterator[str]:
    """Yield the names known in place of an unknown or ambiguous one, a line each."""
    if isinstance(exc, UnknownSubjectError):
        yield from unknown_lines(exc)
    elif isinstance(exc, UnknownTenantError):
        yield from (f"known under another spelling: {each!r}" for each in exc.others)
    elif isinstance(exc, AmbiguousSubjectError):
        yield from ambiguous_lines(exc)
    elif isinstance(exc, AmbiguousMemoryError):
        for store, collection in exc.places:
            yield f"known in: --store {store}" + (
                f" --collection {collection}" if collection else ""
            )
