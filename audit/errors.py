"""The ways in which the audit trail says that it cannot be written or read."""

from __future__ import annotations

from ..telemetry.sink import UnavailableError


class AuditError(UnavailableError):
    """
    The audit database cannot be used. One line: what is wrong, and what to do.

    What could not be recorded is kept, and asked for again until somebody has done it.
    """


class KeyMissingError(AuditError):
    """
    A secret is missing with which the trail, or a part of it, was written.

    Nobody is found without it, which is not the same as nobody being there.
    """


class SubjectConflictError(AuditError):
    """Two customers would be one: an identifier belongs to somebody else already."""


def reason_of(exc: OSError) -> str:
    """Say in a few words why the file system refused."""
    if isinstance(exc, (FileExistsError, NotADirectoryError)):
        return "a part of its path is a file, not a folder"
    return (exc.strerror or type(exc).__name__).lower()
