"""
The definitions of a PostgreSQL database, and its indexes, held against what they should be.

Names mean what whoever can set a search path, or make a function, wants them to mean. So each name
of the server's own stands here with its schema, tables are looked up by the schema that holds them,
and what stands before the server's own in that schema is itself a finding.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from . import postgres_partitions
from .database import Partition
from .definitions import words_of

if TYPE_CHECKING:
    import psycopg

_FIND = """
    SELECT c.relname, c.oid FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = pg_catalog.current_schema() AND c.relname = ANY(%s)
"""
_NO_TABLES = """
    SELECT c.relname, c.relkind NOT IN ('r', 'p') OR EXISTS(
      SELECT 1 FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class p ON p.oid = i.inhrelid
      WHERE i.inhparent = c.oid AND c.relkind = 'p' AND p.relkind <> 'r')
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = pg_catalog.current_schema() AND c.relname = ANY(%s)
"""
_COLUMNS = """
    SELECT a.attrelid, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod)
      || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
      || CASE WHEN a.atthasdef OR a.attidentity <> '' THEN ' DEFAULT' ELSE '' END
      || CASE WHEN a.attcollation <> t.typcollation THEN ' COLLATE' ELSE '' END
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped
"""
# Since version 18, NOT NULL is a constraint as well: it is told with the columns.
_CONSTRAINTS = """
    SELECT conrelid, conname, pg_catalog.pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint
    WHERE conrelid = ANY(%s) AND contype NOT IN ('n', 't') AND NOT (contype = 'c'
      AND pg_catalog.pg_get_constraintdef(oid)
        ~ '^CHECK ...seq >= 0. AND .seq < .?.?[0-9]+.?(::bigint)?.?...( NOT VALID)?$')
"""
_INDEXES = """
    SELECT i.indrelid, c.relname, pg_catalog.pg_get_indexdef(i.indexrelid, 0, true)
      || CASE WHEN i.indisvalid AND i.indisready AND i.indislive
        THEN '' ELSE ' disabled' END
      || CASE WHEN EXISTS(
        SELECT 1 FROM pg_catalog.pg_opclass o
        JOIN pg_catalog.pg_namespace n ON n.oid = o.opcnamespace
        WHERE o.oid = ANY(i.indclass) AND n.nspname <> 'pg_catalog')
        THEN ' of another order' ELSE '' END
    FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = ANY(%s)
"""
_TRIGGERS = """
    SELECT t.tgrelid, t.tgname, t.tgtype || ' ' || p.proname
      || CASE WHEN t.tgenabled = 'O' THEN '' ELSE ' disabled' END
      || CASE WHEN t.tgisinternal OR t.tgnargs > 0 OR t.tgqual IS NOT NULL OR t.tgconstraint <> 0
        OR t.tgdeferrable OR t.tgoldtable IS NOT NULL OR t.tgnewtable IS NOT NULL
        OR t.tgattr::pg_catalog.text <> ''
        THEN ' at times' ELSE '' END
      || CASE WHEN n.nspname = pg_catalog.current_schema() AND l.lanname = 'plpgsql'
        AND l.lanplcallfoid = 'pg_catalog.plpgsql_call_handler'::pg_catalog.regproc
        AND NOT p.prosecdef AND NOT p.proleakproof AND NOT p.proisstrict AND NOT p.proretset
        AND p.proconfig IS NULL AND p.probin IS NULL AND p.prokind = 'f' AND p.pronargs = 0
        AND p.provolatile = 'v' AND p.prorettype = 'pg_catalog.trigger'::pg_catalog.regtype
        THEN '' ELSE ' otherwise' END
      || ' ' || p.prosrc
    FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    WHERE t.tgrelid = ANY(%s)
"""
_PLAIN = """
    SELECT c.oid, c.relkind::pg_catalog.text, c.relispartition, pg_catalog.pg_get_partkeydef(c.oid),
      c.relpersistence = 'p' AND NOT c.relrowsecurity
      AND NOT c.relforcerowsecurity AND c.reloftype = 0
      AND NOT EXISTS(SELECT 1 FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid)
      AND NOT EXISTS(SELECT 1 FROM pg_catalog.pg_policy y WHERE y.polrelid = c.oid)
      AND NOT EXISTS(SELECT 1 FROM pg_catalog.pg_subscription_rel b WHERE b.srrelid = c.oid)
      AND NOT EXISTS(SELECT 1 FROM pg_catalog.pg_statistic_ext s
        WHERE s.stxrelid = c.oid AND s.stxexprs IS NOT NULL)
      AND NOT EXISTS(
        SELECT 1 FROM pg_catalog.pg_inherits i WHERE c.oid = i.inhrelid AND NOT c.relispartition
          OR c.oid = i.inhparent AND c.relkind = 'r')
      AND (c.relkind = 'p'
        OR EXISTS(SELECT 1 FROM pg_catalog.pg_am m WHERE m.oid = c.relam AND m.amname = 'heap'))
    FROM pg_catalog.pg_class c WHERE c.oid = ANY(%s)
"""
# Whoever owns an extension may add functions to it; those in C are a superuser's.
_IS_OURS = """
    n.nspname = pg_catalog.current_schema() AND NOT (
      EXISTS(SELECT 1 FROM pg_catalog.pg_depend d WHERE d.objid = {oid} AND d.deptype = 'e')
      AND EXISTS(SELECT 1 FROM pg_catalog.pg_proc f
        JOIN pg_catalog.pg_language l ON l.oid = f.prolang
        WHERE f.oid = {function} AND l.lanname IN ('c', 'internal')))
"""
_BUILT_IN = """
    NOT EXISTS(SELECT 1 FROM pg_catalog.unnest({types}) u(id)
      LEFT JOIN pg_catalog.pg_type t ON t.oid = u.id
      WHERE u.id <> 0 AND t.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace)
"""
# Of functions and operators the one whose types fit best is called, wherever it is.
_SHADOWS = f"""
    SELECT 'function ' || p.proname FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE {_IS_OURS.format(oid="p.oid", function="p.oid")}
      AND {_BUILT_IN.format(types="p.proargtypes::pg_catalog.oid[]")}
      AND EXISTS(SELECT 1 FROM pg_catalog.pg_proc own WHERE own.proname = p.proname
        AND own.pronamespace = 'pg_catalog'::pg_catalog.regnamespace)
    UNION ALL
    SELECT 'operator ' || o.oprname FROM pg_catalog.pg_operator o
    JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace
    WHERE {_IS_OURS.format(oid="o.oid", function="o.oprcode")}
      AND {_BUILT_IN.format(types="ARRAY[o.oprleft, o.oprright]")}
    UNION ALL
    SELECT 'cast to ' || pg_catalog.format_type(c.casttarget, NULL) FROM pg_catalog.pg_cast c
    WHERE c.oid >= 16384 AND {_BUILT_IN.format(types="ARRAY[c.castsource, c.casttarget]")}
"""  # noqa: S608 - names of ours
_REPLICA = "SELECT pg_catalog.current_setting('session_replication_role')"
# The bits of PostgreSQL's pg_trigger.h.
_MOMENTS = {"BEFORE": 2, "INSERT": 4, "DELETE": 8, "UPDATE": 16, "TRUNCATE": 32}
"""What the words of a trigger add to its ``tgtype``; for each row, 1 besides."""


class TableDefinition(NamedTuple):
    """
    A table as it should be.

    Attributes:
        columns: Their types, and whether they are never NULL.
        key: The columns of its primary key.
        kind: Of the server's: whether it is, and what it is partitioned by.
    """

    columns: Mapping[str, str]
    key: tuple[str, ...]
    kind: tuple[str, bool, str | None] = ("r", False, None)


def wrong_definitions(
    connection: psycopg.Connection[Any],
    tables: Mapping[str, TableDefinition],
    statements: Sequence[str],
) -> list[str]:
    """
    Return which tables, indexes and triggers are not those that *statements* make.

    And what in their schema comes before what the server itself has of that name.
    """
    parts = postgres_partitions.partitions(connection)
    written, wanted = _Statements(statements), {**tables}
    for each in {part.table for part in parts} & wanted.keys():
        wanted[each] = TableDefinition(tables[each].columns, (), _PARTED)
    for first in {part.first for part in parts}:
        written.add([*postgres_partitions.of_partitions(statements, first)])
    wanted |= {part.name: tables[part.table]._replace(kind=_PART) for part in parts}
    wrong = [*_wrong_bounds(connection, parts), *_wrong(connection, wanted, written)]
    shadows: list[Any] = connection.execute(_SHADOWS.encode()).fetchall()
    wrong += [f"the {each} comes before the server's own" for (each,) in shadows]
    if connection.execute(_REPLICA).fetchone() != ("origin",):
        wrong.append("a setting of this role or database keeps triggers from firing")
    return wrong


_PARTED, _PART = ("p", False, "RANGE (seq)"), ("r", True, None)
_ENDS = "SELECT '{3}', {1}::bigint, min(seq), max(seq), {2}::bigint FROM {3}"
_LEFT = f"""
    SELECT c.relname FROM pg_catalog.pg_class c
    WHERE c.relnamespace = pg_catalog.current_schema()::pg_catalog.regnamespace
      AND c.relkind NOT IN ('i', 'I') AND NOT c.relispartition
      AND c.relname ~ '^({"|".join(postgres_partitions.TABLES)})_[0-9]+$'
"""  # noqa: S608 - names of ours


def _wrong_bounds(connection: psycopg.Connection[Any], found: Sequence[Partition]) -> Iterator[str]:
    """Yield what is wrong with the partitions as a whole: each table has the same, without gaps."""
    left: list[Any] = connection.execute(_LEFT.encode()).fetchall()
    yield from (f"{name} is no partition any more" for (name,) in left)
    bounds = {
        table: [(each.first, each.stop) for each in found if each.table == table]
        for table in postgres_partitions.TABLES
    }
    head: Any = connection.execute("SELECT first_seq, size FROM audit_log").fetchone()
    first_seq, size = head or (0, 0)
    for table, its in bounds.items():
        if its != bounds["audit_event"]:
            yield f"{table} has other partitions than audit_event"
        if its and (
            its[0][0] > first_seq
            or its[-1][1] < size
            or any(later != stop for (_first, stop), (later, _stop) in pairwise(its))
        ):
            yield f"the partitions of {table} are not all there"
    yield from (
        f"{each.name} is no partition that was made here" for each in found if not each.is_sound
    )
    # By their indexes: the planner takes a partition's word for its bounds.
    ends = " UNION ALL ".join(_ENDS.format(*each) for each in found if each.is_sound)
    for name, first, low, high, stop in (
        connection.execute(ends.encode()).fetchall() if ends else ()
    ):
        if low is not None and not first <= low <= high < stop:
            yield f"{name} has rows of other partitions"


def wrong_tables(connection: psycopg.Connection[Any], tables: Sequence[str]) -> list[str]:
    """
    Return which of *tables* are gone, or something else.

    A view may give any answer, or never end.
    """
    others = dict(connection.execute(_NO_TABLES, (list(tables),)).fetchall())
    wrong = (each for each in tables if others.get(each, True))
    return [f"{each} is {'not a table' if each in others else 'missing'}" for each in wrong]


def has_any(connection: psycopg.Connection[Any], tables: Sequence[str]) -> bool:
    """Return whether one of *tables* is there, or something else of its name."""
    return connection.execute(_NO_TABLES, (list(tables),)).fetchone() is not None


class _Statements:
    """The indexes and triggers that statements make, by table."""

    def __init__(self, statements: Sequence[str]) -> None:
        self.indexes: dict[str, dict[str, str]] = {}
        self.triggers: dict[str, dict[str, str]] = {}
        self._bodies: dict[str, str] = {}
        self.add(statements)

    def add(self, statements: Sequence[str]) -> None:
        """Add what *statements* make."""
        functions = (_FUNCTION.match(each) for each in statements)
        self._bodies |= {found[1]: found[2] for found in functions if found}
        for each in (" ".join(statement.split()) for statement in statements):
            if index := re.match(r"CREATE (?:UNIQUE )?INDEX (\w+) ON (\w+)", each):
                self.indexes.setdefault(index[2], {})[index[1]] = each
            elif dropped := re.match(r"DROP INDEX (\w+)", each):
                for indexes in self.indexes.values():
                    indexes.pop(dropped[1], None)
            elif trigger := re.match(r"CREATE TRIGGER (\w+) (.*) ON (\w+) .* FUNCTION (\w+)", each):
                moments = sum(_MOMENTS.get(word, 0) for word in trigger[2].split())
                kind = moments + ("FOR EACH ROW" in each)
                body = f"{kind} {trigger[4]} {self._bodies[trigger[4]]}"
                self.triggers.setdefault(trigger[3], {})[trigger[1]] = body


def _wrong(
    connection: psycopg.Connection[Any], tables: Mapping[str, TableDefinition], written: _Statements
) -> Iterator[str]:
    oids = _oids_of(connection, [*tables])
    kinds = dict(_by_table(connection, _PLAIN, oids))
    there = {query: _by_table(connection, query, oids) for query in _PARTS}
    for name, table in tables.items():
        oid = oids.get(name, 0)
        if kinds.get(oid) != [(*table.kind, True)]:
            yield (
                f"{name} is not a plain table: it is a view, has rules, policies, heirs or "
                "statistics that call functions, or a subscription writes to it"
            )
        # Parts of a partitioned table have its keys, indexes and triggers, and it has none.
        keyed, is_whole = bool(table.key), table.kind != _PARTED
        key = f"({', '.join(table.key)})"
        indexes = (written.indexes.get(name, {}) if is_whole else {}) | (
            {f"{name}_pkey": f"CREATE UNIQUE INDEX {name}_pkey ON {name} {key}"} if keyed else {}
        )
        expected = {
            _COLUMNS: table.columns,
            _CONSTRAINTS: {f"{name}_pkey": f"PRIMARY KEY {key}"} if keyed else {},
            _INDEXES: {each: _bare(definition) for each, definition in indexes.items()},
            _TRIGGERS: written.triggers.get(name, {}) if is_whole else {},
        }
        for query, what in _PARTS.items():
            bare = _bare if query is _INDEXES else str
            found = {each: bare(definition) for each, definition in there[query][oid]}
            wanted = expected[query]
            for each in sorted(found.keys() | wanted.keys()):
                if found.get(each) != wanted.get(each):
                    yield f"the {what} {each} of {name} is defined otherwise than it was made"


_PARTS = {_COLUMNS: "column", _CONSTRAINTS: "constraint", _INDEXES: "index", _TRIGGERS: "trigger"}


def _by_table(
    connection: psycopg.Connection[Any], query: str, oids: Mapping[str, int]
) -> defaultdict[int, list[Any]]:
    """Return what *query* finds, by the number of the table that comes first in its rows."""
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for oid, *each in connection.execute(query.encode(), ([*oids.values()],)).fetchall():
        found[oid].append(tuple(each))
    return found


def _oids_of(connection: psycopg.Connection[Any], tables: Sequence[str]) -> dict[str, int]:
    """Return the server's numbers of those tables that are in our schema."""
    return dict(connection.execute(_FIND, (list(tables),)).fetchall())


_FUNCTION = re.compile(r"\s*CREATE FUNCTION (\w+)\(.*?\$\$(.*)\$\$", re.DOTALL)


def _bare(definition: str) -> str:
    """Return the words of an index, without what the server adds to them."""
    words = (each if each[:1] in "'\"" else each.lower() for each in words_of(definition))
    text = " ".join(word for word in words if word not in {"(", ")"})
    return text.replace(" using btree", "").replace(" : : text", "")


# -- indexes ---------------------------------------------------------------------------------------

_LISTED = """
    SELECT pg_catalog.quote_ident(c.relname),
      coalesce(pg_catalog.pg_get_expr(i.indpred, i.indrelid), 'true'),
      ARRAY(SELECT pg_catalog.quote_ident(a.attname)
        FROM pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY k(num, place)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num
        ORDER BY k.place)
    FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = %s
"""
# The planner chooses; by what it may not use it is made to read the one or the other.
_FROM_TABLE = ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan")
_FROM_INDEX = ("enable_seqscan", "enable_bitmapscan", "enable_sort")


def wrong_indexes(connection: psycopg.Connection[Any], tables: Sequence[str]) -> list[str]:
    """Return the indexes that do not hold what their tables hold."""
    parts = postgres_partitions.partitions(connection)
    parted = {part.table for part in parts}
    listed = [each for each in tables if each not in parted]
    listed += [each.name for each in parts if each.table in tables and each.is_sound]
    oids = _oids_of(connection, listed)
    return [
        f"the index {name} does not hold what its table holds"
        for table in listed
        for name, *index in connection.execute(_LISTED, (oids.get(table, 0),)).fetchall()
        if not _is_whole(connection, table, *index)
    ]


def _is_whole(
    connection: psycopg.Connection[Any], table: str, condition: str, columns: list[str]
) -> bool:
    """Return whether a table, read by its rows and by its index, is the same."""
    names = ", ".join(columns)
    query = f"""
        SELECT count(*), pg_catalog.sum(
          pg_catalog.hashtextextended(ROW({names})::pg_catalog.text, 0::pg_catalog.int8)
          ::pg_catalog.numeric)
        FROM (SELECT {names} FROM {table} WHERE {condition} ORDER BY {names}) each
    """  # noqa: S608 - from the catalogue, as it quotes names
    by_rows = _without(connection, _FROM_TABLE, query)
    by_index = _without(connection, _FROM_INDEX, query)
    return bool(by_rows == by_index)


def _without(connection: psycopg.Connection[Any], plans: Sequence[str], query: str) -> Any:
    for each in plans:
        connection.execute(f"SET LOCAL {each} = off".encode())
    found = connection.execute(query.encode()).fetchone()
    for each in plans:
        connection.execute(f"SET LOCAL {each} = on".encode())
    return found
