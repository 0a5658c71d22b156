"""The definitions of a PostgreSQL database, and its indexes, held against what they should be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import psycopg

_COLUMNS = """
    SELECT a.attname, format_type(a.atttypid, a.atttypmod)
      || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
      || CASE WHEN a.atthasdef OR a.attidentity <> '' THEN ' DEFAULT' ELSE '' END
      || CASE WHEN a.attcollation <> t.typcollation THEN ' COLLATE' ELSE '' END
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
"""
# Since version 18, NOT NULL is a constraint as well: it is told with the columns.
_CONSTRAINTS = """
    SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE conrelid = to_regclass(%s) AND contype NOT IN ('n', 't')
"""
_INDEXES = """
    SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid)
      || CASE WHEN indisvalid AND indisready AND indislive THEN '' ELSE ' disabled' END
    FROM pg_index WHERE indrelid = to_regclass(%s)
"""
_TRIGGERS = """
    SELECT t.tgname, pg_get_triggerdef(t.oid) || ' ' || p.prosrc
      || CASE WHEN t.tgenabled = 'O' THEN '' ELSE ' disabled' END
    FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
    WHERE t.tgrelid = to_regclass(%s) AND NOT t.tgisinternal
"""
_PLAIN = """
    SELECT c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relrowsecurity
      AND NOT c.relforcerowsecurity
      AND NOT EXISTS(SELECT 1 FROM pg_rewrite r WHERE r.ev_class = c.oid)
      AND NOT EXISTS(SELECT 1 FROM pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent))
    FROM pg_class c WHERE c.oid = to_regclass(%s)
"""


class TableDefinition(NamedTuple):
    """
    A table as it should be.

    Attributes:
        columns: Their types, and whether they are never NULL.
        key: The columns of its primary key.
    """

    columns: Mapping[str, str]
    key: tuple[str, ...]


def wrong_definitions(
    connection: psycopg.Connection[Any],
    tables: Mapping[str, TableDefinition],
    statements: Sequence[str],
) -> list[str]:
    """Return which tables, indexes and triggers are not those that *statements* make."""
    written = _Statements(statements)
    return [
        each for name, table in tables.items() for each in _wrong(connection, name, table, written)
    ]


class _Statements:
    """The indexes and triggers that statements make, by table."""

    def __init__(self, statements: Sequence[str]) -> None:
        self.indexes: dict[str, dict[str, str]] = {}
        self.triggers: dict[str, dict[str, str]] = {}
        bodies: dict[str, str] = {}
        for each in (" ".join(statement.split()) for statement in statements):
            if index := re.match(r"CREATE (?:UNIQUE )?INDEX (\w+) ON (\w+)", each):
                self.indexes.setdefault(index[2], {})[index[1]] = each
            elif dropped := re.match(r"DROP INDEX (\w+)", each):
                for indexes in self.indexes.values():
                    indexes.pop(dropped[1], None)
            elif function := re.match(r"CREATE FUNCTION (\w+)\(.*\$\$(.*)\$\$", each):
                bodies[function[1]] = function[2]
            elif trigger := re.match(r"CREATE TRIGGER (\w+) .* ON (\w+) .* FUNCTION (\w+)", each):
                body = f"{each} {bodies[trigger[3]]}"
                self.triggers.setdefault(trigger[2], {})[trigger[1]] = body


def _wrong(
    connection: psycopg.Connection[Any], name: str, table: TableDefinition, written: _Statements
) -> Iterator[str]:
    if connection.execute(_PLAIN, (name,)).fetchone() != (True,):
        yield f"{name} is not a plain table: it is a view, or has rules, policies or heirs"
    key = f"({', '.join(table.key)})"
    keyed = bool(table.key)
    indexes = written.indexes.get(name, {}) | (
        {f"{name}_pkey": f"CREATE UNIQUE INDEX {name}_pkey ON {name} {key}"} if keyed else {}
    )
    expected = {
        _COLUMNS: ("column", table.columns),
        _CONSTRAINTS: ("constraint", {f"{name}_pkey": f"PRIMARY KEY {key}"} if keyed else {}),
        _INDEXES: ("index", indexes),
        _TRIGGERS: ("trigger", written.triggers.get(name, {})),
    }
    for query, (kind, definitions) in expected.items():
        found: list[Any] = connection.execute(query.encode(), (name,)).fetchall()
        there = {each: _bare(definition) for each, definition in found}
        wanted = {each: _bare(definition) for each, definition in definitions.items()}
        for each in sorted(there.keys() | wanted.keys()):
            if there.get(each) != wanted.get(each):
                yield f"the {kind} {each} of {name} is defined otherwise than it was made"


def _bare(definition: str) -> str:
    """Return a definition without what the server adds, or may write in several ways."""
    text = definition.lower().replace(" using btree", "").replace("::text", "")
    text = re.sub(r"\b(on|function) \w+\.(\w)", r"\1 \2", text)
    # It has an order of its own for what a trigger is called before.
    text = re.sub(
        r"(before) (.+?) (on)", lambda found: " ".join(sorted(found[2].split(" or "))), text
    )
    return re.sub(r"[\s()]+", "", text)


# -- indexes ---------------------------------------------------------------------------------------

_LISTED = """
    SELECT i.indexrelid::regclass::text, i.indrelid::regclass::text,
      coalesce(pg_get_expr(i.indpred, i.indrelid), 'true'),
      ARRAY(SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY k(num, place)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num ORDER BY k.place)
    FROM pg_index i WHERE i.indrelid = to_regclass(%s)
"""
_FROM_TABLE = ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan")
_FROM_INDEX = ("enable_seqscan", "enable_bitmapscan", "enable_sort")


def wrong_indexes(connection: psycopg.Connection[Any], tables: Sequence[str]) -> list[str]:
    """Return the indexes that do not hold what their tables hold."""
    return [
        f"the index {name} does not hold what its table holds"
        for table in tables
        for name, *index in connection.execute(_LISTED, (table,)).fetchall()
        if not _is_whole(connection, *index)
    ]


def _is_whole(
    connection: psycopg.Connection[Any], table: str, condition: str, columns: list[str]
) -> bool:
    """Return whether a table, read by its rows and by its index, is the same."""
    names = ", ".join(columns)
    query = f"""
        SELECT count(*), sum(hashtextextended(ROW({names})::text, 0)::numeric)
        FROM (SELECT {names} FROM {table} WHERE {condition} ORDER BY {names}) each
    """  # noqa: S608 - from the catalogue, as it quotes names
    by_rows = _without(connection, _FROM_TABLE, query)
    by_index = _without(connection, _FROM_INDEX, query)
    return bool(by_rows == by_index)


def _without(connection: psycopg.Connection[Any], plans: Sequence[str], query: str) -> Any:
    for each in plans:
        connection.execute(f"SET LOCAL {each} = off".encode())
    try:
        return connection.execute(query.encode()).fetchone()
    finally:
        for each in plans:
            connection.execute(f"SET LOCAL {each} = on".encode())
