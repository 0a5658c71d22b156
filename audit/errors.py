"""The one way in which the audit trail says that it cannot be written or read."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ..telemetry.sink import UnavailableError


class AuditError(UnavailableError):
    """
    The audit database cannot be used. One line: what is wrong, and what to do.

    The lane keeps what it could not record, and asks again until somebody has done it.
    """


_ADVICE = {
    "SQLITE_NOTADB": "is not an SQLite database; nothing in it was changed. Move it away",
    "SQLITE_CORRUPT": "is damaged; nothing in it was changed. Copy it, then run `sqlite3 .recover`",
    "SQLITE_READONLY": "is read-only. Let this user write to it and to its folder",
    "SQLITE_CANTOPEN": "cannot be opened. Check the path and its permissions",
    "SQLITE_PERM": "cannot be opened. Check its permissions",
    "SQLITE_BUSY": "was locked by another process for too long",
    "SQLITE_FULL": "cannot grow: the disk is full",
    "SQLITE_IOERR": "met an error of the disk",
}


@contextmanager
def explained(path: Path) -> Generator[None]:
    """Turn errors of SQLite and of the file system about *path* into an `AuditError`."""
    try:
        yield
    except sqlite3.Error as exc:
        name = getattr(exc, "sqlite_errorname", None) or type(exc).__name__
        primary = "_".join(name.split("_")[:2])  # SQLITE_READONLY_DBMOVED -> SQLITE_READONLY
        advice = _ADVICE.get(primary, f"failed ({name})")
        raise AuditError(f"the audit database {path} {advice}") from exc
    except OSError as exc:
        raise AuditError(f"the audit database {path} cannot be used: {reason_of(exc)}") from exc


def reason_of(exc: OSError) -> str:
    """Say in a few words why the file system refused."""
    if isinstance(exc, (FileExistsError, NotADirectoryError)):
        return "a part of its path is a file, not a folder"
    return (exc.strerror or type(exc).__name__).lower()
