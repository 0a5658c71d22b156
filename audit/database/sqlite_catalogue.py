"""The definitions of an SQLite database, and its indexes, held against what they should be."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from typing import Any, NamedTuple

from .database import ReadConnection
from .definitions import words_of

_STATISTICS = frozenset({"sqlite_stat1", "sqlite_stat4"})
"""What ANALYZE makes: it changes how rows are found, not which."""

_MOST = 100
_SOME = 10
_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master"


class _Object(NamedTuple):
    """A table, index, trigger or view, as a row of the catalogue has it."""

    kind: Any
    name: Any
    table: Any
    words: tuple[str, ...]


def wrong_definitions(connection: sqlite3.Connection, statements: Sequence[str]) -> list[str]:
    """Return which tables, indexes, triggers and views are not those that *statements* make."""
    expected, there = _made_by(tuple(statements)), Counter(_objects(connection))
    names = {each[:2] for each in there}
    wrong = [
        f"the {each.kind} {each.name} is missing"
        if each[:2] not in names
        else f"the {each.kind} {each.name} is defined otherwise than it was made"
        for each in sorted(expected)
        if there[each] != 1
    ]
    ours = {each[:2] for each in expected}
    more = (each for each in there if each[:2] not in ours and not _is_of_statistics(each))
    return wrong + [
        f"there is a {kind} {name}, which is not the trail's" for kind, name, *_rest in more
    ]


def _is_of_statistics(found: _Object) -> bool:
    return found.kind == "table" and found.name in _STATISTICS and found.table == found.name


@lru_cache(8)
def _made_by(statements: tuple[str, ...]) -> frozenset[_Object]:
    with closing(sqlite3.connect(":memory:")) as fresh:
        for each in statements:
            fresh.execute(each)
        return frozenset(_objects(fresh))


def _objects(connection: sqlite3.Connection) -> Iterable[_Object]:
    for kind, name, table, sql in connection.execute(_OBJECTS).fetchall():
        words = words_of(sql) if isinstance(sql, str) else () if sql is None else ("?",)
        yield _Object(kind, name, table, words)


def wrong_tables(connection: sqlite3.Connection, tables: Sequence[str]) -> list[str]:
    """
    Return which of *tables* are gone, or something else.

    A view may give any answer, or never end.
    """
    marks = ", ".join("?" * len(tables))
    found = connection.execute(
        f"SELECT lower(name), type FROM sqlite_master WHERE lower(name) IN ({marks})",  # noqa: S608 - marks
        tables,
    )
    kinds = dict(found.fetchall())
    wrong = (each for each in tables if kinds.get(each) != "table")
    return [f"{each} is {'not a table' if each in kinds else 'missing'}" for each in wrong]


def wrong_values(
    connection: ReadConnection,
    kinds: Mapping[str, Mapping[str, str]],
    required: Mapping[str, Collection[str]],
) -> list[str]:
    """
    Return where a value stands that is of another type than its column, some of each table.

    Args:
        connection: Of the database.
        kinds: The types of the columns, by table.
        required: The columns that are never NULL, by table.
    """
    return [
        f"a value in {table}.{column} is of another type{'' if at is None else f', at {at:,}'}"
        for table, columns in kinds.items()
        for column, at in _misfits(connection, table, columns, required[table])
    ]


def _misfits(
    connection: ReadConnection, table: str, kinds: Mapping[str, str], required: Collection[str]
) -> Iterator[tuple[str, int | None]]:
    """Yield the column of each misfit, with the number that its row begins with, if it has one."""
    first = next(iter(kinds))
    for column, kind in kinds.items():
        fits = f"'{kind}'" if column in required else f"'{kind}', 'null'"
        rows = connection.execute(
            f"SELECT {first} FROM {table} WHERE typeof({column}) NOT IN ({fits}) LIMIT {_SOME}"  # noqa: S608 - names of ours
        )
        for (at,) in rows.fetchall():
            yield column, at if isinstance(at, int) else None


def wrong_indexes(connection: sqlite3.Connection, tables: Sequence[str] | None) -> list[str]:
    """
    Return what is in an index, and not in its table, or the reverse; and other damage.

    Args:
        connection: Of the database.
        tables: Those whose indexes are read. None: all, and the file.
    """
    # Given a number, the pragma checks the whole file and stops after so many findings.
    wanted = tables or (str(_MOST),)
    found = (connection.execute(f"PRAGMA integrity_check({each})").fetchall() for each in wanted)
    return [_said(text) for rows in found for (text,) in rows if text != "ok"]


def _said(text: str) -> str:
    index = re.search(r"index (\w+)", text)
    if index:
        return f"the index {index[1]} does not hold what its table holds"
    return "the file is damaged: see `PRAGMA integrity_check`"
