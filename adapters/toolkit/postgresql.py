"""
The PostgreSQL database behind a connection or a pool of psycopg, told without asking the server.

The schema is as it was configured. Where it was not, it depends on the role, for which there may be
a schema of its own, or a search path: two roles are two databases then.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from importlib import import_module
from typing import Any

from ...memory.database import Database
from .databases import part

_DEFAULT_PATH = '"$user",public'
_WORD = re.compile(r"(?:\\.|\S)+")
_ESCAPED = re.compile(r"\\(.)")


def postgres_database(connection: Any) -> Database | None:
    """Return the database of a connection or pool, open or not. None: it cannot be told."""
    given = _parameters(connection)
    host, port = given.get("host", ""), given.get("port") or "5432"
    # Of several hosts any may answer; a service's file, and a socket's default, are elsewhere.
    if not host or "," in host + port or given.get("hostaddr") or given.get("service"):
        return None
    path = _search_path(given)
    if hasattr(connection, "pgconn") and _reported_path(connection) != path:
        return None  # a statement may have chosen another one since: it says so from 18 on
    # A host that begins with a slash is the folder of a socket.
    place = os.path.realpath(host) if host.startswith("/") else host.lower()
    name = given.get("dbname") or given["user"]
    return Database("postgresql", f"{part(place)}:{port}/{part(name)} {part(_schema(given, path))}")


def _parameters(connection: Any) -> dict[str, str]:
    """Return what libpq is told, as far as it is certain: from the environment as well."""
    if (live := getattr(connection, "pgconn", None)) is not None:
        return _values(live.info)
    conninfo, kwargs = connection.conninfo, connection.kwargs
    classes: list[Any] = [type(connection), connection.connection_class]
    known = [each.__module__.partition(".")[0] for each in classes] == ["psycopg_pool", "psycopg"]
    # Functions of the user's may choose another database or schema for each connection.
    if not known or callable(conninfo) or callable(kwargs) or connection._configure is not None:  # noqa: SLF001 - it is told nowhere else
        return {}
    psycopg: Any = import_module("psycopg")
    named = psycopg.conninfo.conninfo_to_dict(conninfo or "", **(kwargs or {}))
    return _values(psycopg.pq.Conninfo.get_defaults()) | {k: str(v) for k, v in named.items()}


def _values(options: Any) -> dict[str, str]:
    return {each.keyword.decode(): each.val.decode() for each in options if each.val is not None}


def _search_path(given: dict[str, str]) -> str:
    return _plain(_settings(given.get("options", "")).get("search_path", _DEFAULT_PATH))


def _reported_path(connection: Any) -> str:
    return _plain(connection.info.parameter_status("search_path") or "")


def _schema(given: dict[str, str], path: str) -> str:
    settings = _settings(given.get("options", ""))
    if "search_path" in settings and "$user" not in path:
        return path
    # Hashed, since a role's name may be a person's.
    role = settings.get("role") or given["user"]
    return f"{path} {sha256(role.encode()).hexdigest()[:16]}"


def _plain(path: str) -> str:
    return ",".join(each.strip() for each in path.split(","))


def _settings(options: str) -> dict[str, str]:
    """Return the settings in the command line *options* of a connection."""
    words = [_ESCAPED.sub(r"\1", each) for each in _WORD.findall(options)]
    found: dict[str, str] = {}
    for place, word in enumerate(words):
        if word == "-c":
            setting = words[place + 1] if place + 1 < len(words) else ""
        elif word.startswith("--"):
            setting = word[2:]
        else:
            setting = word[2:] if word.startswith("-c") else ""
        name, is_set, value = setting.partition("=")
        if is_set:
            found[name.strip().lower().replace("-", "_")] = value.strip()
    return found
