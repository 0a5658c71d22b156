"""The database that an audit URL names."""

from __future__ import annotations

from pathlib import Path

from .database import AuditDatabase

SQLITE = "sqlite:///"


def open_database(url: str | Path) -> AuditDatabase:
    """
    Return the database that an audit URL names: ``sqlite:///path`` or ``postgresql://…``.

    Raises:
        ValueError: It names none. Does not quote the URL, which may hold a password.
    """
    if not isinstance(url, Path) and url.partition("://")[0] in {"postgres", "postgresql"}:
        from .postgres import PostgresDatabase  # noqa: PLC0415 - an extra

        return PostgresDatabase(url)
    from .sqlite import SqliteDatabase  # noqa: PLC0415 - not where PostgreSQL is used

    return SqliteDatabase(path_of(url))


def path_of(url: str | Path) -> Path:
    """
    Return the file that an SQLite URL names: ``sqlite:///relative`` or ``sqlite:////absolute``.

    Raises:
        ValueError: It names none.
    """
    if isinstance(url, Path):
        return url
    scheme, separator, _rest = url.partition("://")
    if not separator:
        raise ValueError("the audit URL must begin with sqlite:/// or postgresql://")
    path = url.removeprefix(SQLITE)
    if scheme != "sqlite" or path == url or not path or path == ":memory:":
        raise ValueError("the audit URL must be sqlite:///path of a file, or postgresql://…")
    return Path(path).expanduser()
