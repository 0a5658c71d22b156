"""The definitions of an SQLite database, and its indexes, held against what they should be."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing

_STATISTICS = {"sqlite_stat1", "sqlite_stat4"}
"""What ANALYZE makes: it changes how rows are found, not which."""

_MOST = 100
_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master"


def wrong_definitions(connection: sqlite3.Connection, statements: Sequence[str]) -> list[str]:
    """Return which tables, indexes, triggers and views are not those that *statements* make."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        for each in statements:
            fresh.execute(each)
        expected = _objects(fresh)
    there = _objects(connection)
    wrong = [
        f"the {kind} {name} is missing"
        if (kind, name) not in there
        else f"the {kind} {name} is defined otherwise than it was made"
        for (kind, name), definition in sorted(expected.items())
        if there.get((kind, name)) != definition
    ]
    more = [
        f"there is a {kind} {name}, which is not the trail's"
        for kind, name in sorted(there.keys() - expected.keys())
        if name not in _STATISTICS
    ]
    return wrong + more


def _objects(connection: sqlite3.Connection) -> dict[tuple[str, str], tuple[str, str]]:
    found = connection.execute(_OBJECTS).fetchall()
    return {(kind, name): (table, _bare(sql or "")) for kind, name, table, sql in found}


def _bare(sql: str) -> str:
    """Return a definition without comments and spaces, which tell nothing."""
    return re.sub(r"\s+", " ", re.sub(r"--[^\n]*", "", sql)).replace("( ", "(").replace(" )", ")")


def wrong_indexes(connection: sqlite3.Connection, tables: Sequence[str] | None) -> list[str]:
    """
    Return what is in an index, and not in its table, or the reverse; and other damage.

    Args:
        connection: Of the database.
        tables: Those whose indexes are read. None: all, and the file.
    """
    wanted = tables or (str(_MOST),)
    found = (connection.execute(f"PRAGMA integrity_check({each})").fetchall() for each in wanted)
    return [_said(text) for rows in found for (text,) in rows if text != "ok"]


def _said(text: str) -> str:
    index = re.search(r"index (\w+)", text)
    if index:
        return f"the index {index[1]} does not hold what its table holds"
    return "the file is damaged: see `PRAGMA integrity_check`"
