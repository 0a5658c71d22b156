"""The errors of the audit trail."""

from __future__ import annotations

from ...telemetry.delivery.sink import UnavailableError


class AuditError(UnavailableError):
    """
    The audit database cannot be used. One line: what is wrong, and what to do.

    Events that could not be recorded are kept and retried.
    """


class KeyMissingError(AuditError):
    """
    A secret is missing with which the trail, or a part of it, was written.

    Nobody is found without it, which is not the same as nobody being there.
    """


class SubjectConflictError(AuditError):
    """Two customers would be one: an identifier belongs to somebody else already."""


def reason_of(exc: OSError) -> str:
    """Return the file system's reason in a few words."""
    if isinstance(exc, (FileExistsError, NotADirectoryError)):
        return "a part of its path is a file, not a folder"
    return (exc.strerror or type(exc).__name__).lower()
