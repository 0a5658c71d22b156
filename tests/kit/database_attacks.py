# ruff: noqa: S608 - an attacker composes what they like
"""
What somebody who may write to the audit database, and has no key, can do to it.

Nothing here knows the tables: they, their columns, keys, indexes and triggers are read from the
database's own catalogue, so a table that is added later is attacked as well. Triggers are gone
while an attack is made, and back when it is done: they keep honest programs honest, and stop nobody
else.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.kit.tampering import unguarded

Row = dict[str, Any]


class RefusedError(Exception):
    """The database itself refuses, or nothing would change."""


class Attack(NamedTuple):
    """
    One thing that is done.

    Attributes:
        name: What.
        target: Table, column, index or trigger.
        make: Does it. Raises `RefusedError`.
    """

    name: str
    target: str
    make: partial[None]


class Table(NamedTuple):
    """A table as the catalogue has it: its columns, and what tells its rows apart."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


class Target(Protocol):
    """A copy of a log in a database, which is attacked."""

    tables: list[Table]

    def run(self, statement: str, *values: Any) -> int: ...

    def rows(self, statement: str, *values: Any) -> list[Any]: ...

    def unguarded(self) -> Any: ...


class SqliteTarget:
    """
    A log in a file.

    Args:
        path: What is attacked: a copy.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = OFF")
        names = self.rows(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        self.tables = [self._table(name) for (name,) in sorted(names)]

    def _table(self, name: str) -> Table:
        found = self.rows(f"PRAGMA table_info({name})")
        keys = sorted((each[5], each[1]) for each in found if each[5])
        return Table(name, tuple(each[1] for each in found), tuple(each for _place, each in keys))

    def run(self, statement: str, *values: Any) -> int:
        """Change something; `RefusedError` where the database does not let it be so."""
        try:
            return self._connection.execute(statement, values).rowcount
        except (sqlite3.IntegrityError, OverflowError) as exc:
            raise RefusedError from exc

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """Ask something."""
        return self._connection.execute(statement, values).fetchall()

    def unguarded(self) -> AbstractContextManager[None]:
        """Return what has no triggers until it is done."""
        return unguarded(self._connection)

    def close(self) -> None:
        """Let go."""
        self._connection.close()


class PostgresTarget:
    """
    A log in a database of a server.

    Args:
        url: What is attacked: a copy.
    """

    def __init__(self, url: str) -> None:
        import psycopg

        # A partition is not changed but with its table.
        refused = (psycopg.errors.WrongObjectType, psycopg.errors.InvalidTableDefinition)
        self._errors = (psycopg.IntegrityError, psycopg.DataError, *refused)
        self._connection: Any = psycopg.connect(url, autocommit=True)
        names = self.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        self.tables = [self._table(name) for (name,) in sorted(names)]

    def _table(self, name: str) -> Table:
        columns = self.rows(
            "SELECT attname FROM pg_attribute WHERE attrelid = ?::regclass AND attnum > 0 "
            "AND NOT attisdropped ORDER BY attnum",
            name,
        )
        keys = self.rows(
            "SELECT a.attname FROM pg_index i, unnest(i.indkey) WITH ORDINALITY k(num, place), "
            "pg_attribute a WHERE i.indrelid = ?::regclass AND i.indisprimary "
            "AND a.attrelid = i.indrelid AND a.attnum = k.num ORDER BY k.place",
            name,
        )
        key = tuple(each for (each,) in keys)
        names = tuple(each for (each,) in columns)
        return Table(name, names, key or names)

    def run(self, statement: str, *values: Any) -> int:
        """Change something; `RefusedError` where the database does not let it be so."""
        try:
            count: int = self._execute(statement, values).rowcount
        except self._errors as exc:
            raise RefusedError from exc
        return count

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """Ask something."""
        found: list[Any] = self._execute(statement, values).fetchall()
        return found

    def saved(self) -> dict[str, list[Any]]:
        """Return all rows, for `restore`."""
        return {each.name: self.rows(f"SELECT * FROM {each.name}") for each in self.tables}

    def restore(self, name: str, rows: Sequence[Any]) -> None:
        """Have a table hold *rows* and nothing else."""
        with self.unguarded(), self._connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {name}")
            marks = ", ".join(["%s"] * len(rows[0]) if rows else "")
            cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)

    def _execute(self, statement: str, values: Sequence[Any]) -> Any:
        if not values:
            return self._connection.execute(statement)
        return self._connection.execute(statement.replace("%", "%%").replace("?", "%s"), values)

    @contextmanager
    def unguarded(self) -> Generator[None]:
        """Have no triggers until the body is done."""
        with self._connection.transaction():
            self.run("SET LOCAL session_replication_role = replica")
            yield

    def close(self) -> None:
        """Let go."""
        self._connection.close()


# -- rows ------------------------------------------------------------------------------------------


def row_attacks(target: Target, *, each: int) -> Iterator[Attack]:
    """Yield what can be done to the rows of every table; *each*: how many rows of each."""
    for table in target.tables:
        rows = read(target, table)
        some = spread(rows, each)
        for row in some:
            for column in (name for name in table.columns if name in row):
                for how, value in changed(row[column]):
                    yield Attack(
                        f"changed: {how}",
                        f"{table.name}.{column}",
                        partial(_set, table=table, row=row, values={column: value}),
                    )
        for column in table.columns:
            for one, other in different(some, column):
                yield Attack(
                    "swapped",
                    f"{table.name}.{column}",
                    partial(_swap, table=table, one=one, other=other, columns=[column]),
                )
                yield Attack(
                    "copied",
                    f"{table.name}.{column}",
                    partial(_set, table=table, row=one, values={column: other[column]}),
                )
        yield from _whole_rows(table, some)


ODD = {
    "nothing": "NULL",
    "text that is no UTF-8": "CAST(X'41FF0041' AS TEXT)",
    "bytes": "X'41FF0041'",
    "no text": "''",
    "no bytes": "X''",
    "a letter": "'x'",
    "half a JSON": "'{\"a\": [1'",
    "line breaks and a command": "'x' || char(10, 27) || '[2J' || char(8238)",
    "the largest number": "9223372036854775807",
    "the smallest number": "-9223372036854775808",
    "a number of years": "1000000000000000",
    "less than nothing": "-1",
    "infinity": "9e999",
    "a fraction": "0.5",
}
"""What may stand in any column of SQLite, as its SQL writes it."""


def odd_values(target: SqliteTarget) -> Iterator[Attack]:
    """Yield each odd value in each column, in the first row of each table and in the last."""
    for table in target.tables:
        rows = read(target, table)
        for row in (rows[:1] + rows[-1:])[: 2 if len(rows) > 1 else 1]:
            for column in table.columns:
                for name, sql in ODD.items():
                    yield Attack(
                        name,
                        f"{table.name}.{column}",
                        partial(_set_odd, table=table, row=row, column=column, sql=sql),
                    )


def _set_odd(target: Target, *, table: Table, row: Row, column: str, sql: str) -> None:
    key = [row[name] for name in table.key]
    with target.unguarded():
        change = f"UPDATE {table.name} SET {column} = {sql} WHERE {_where(table)}"
        if not target.run(f"{change} AND {column} IS NOT {sql}", *key):
            raise RefusedError


def _whole_rows(table: Table, some: list[Row]) -> Iterator[Attack]:
    rest = [each for each in table.columns if each not in table.key]
    for one, other in list(combinations(some, 2))[:3]:
        yield Attack(
            "rows swapped",
            table.name,
            partial(_swap, table=table, one=one, other=other, columns=rest),
        )
    for row in some:
        yield Attack("row deleted", table.name, partial(_delete, table=table, row=row))
        for column in table.key:
            if column in row:
                new = {**row, column: another(row[column])}
                yield Attack(
                    f"row duplicated with another {column}",
                    table.name,
                    partial(_insert, table=table, row=new),
                )
        new = {name: another(value) for name, value in row.items()}
        yield Attack("row inserted", table.name, partial(_insert, table=table, row=new))
        yield Attack("row duplicated", table.name, partial(_twice, table=table, row=row))
    yield Attack("emptied", table.name, partial(_empty, table=table))


def read(target: Target, table: Table) -> list[Row]:
    """Return all rows of a table."""
    chosen = ", ".join(dict.fromkeys((*table.columns, *table.key)))
    found = target.rows(f"SELECT {chosen} FROM {table.name} ORDER BY {', '.join(table.key)}")
    names = list(dict.fromkeys((*table.columns, *table.key)))
    return [dict(zip(names, map(_plain, row), strict=True)) for row in found]


def spread(rows: Sequence[Any], count: int) -> list[Any]:
    """Return so many of *rows*, the first and the last among them."""
    if len(rows) <= count:
        return list(rows)
    return [rows[round(place * (len(rows) - 1) / (count - 1))] for place in range(count)]


def different(rows: Sequence[Row], column: str) -> list[tuple[Row, Row]]:
    """Return two rows that differ in a column, if there are any."""
    pairs = combinations(rows, 2)
    return [(a, b) for a, b in pairs if a.get(column) != b.get(column)][:2]


def changed(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield other values of the same type."""
    if value is None:
        yield from (("set", 1), ("set", "x"), ("set", b"x"))
        return
    yield "nothing", None
    if isinstance(value, str):
        yield from (("longer", f"{value} "), ("shorter", value[:-1]), ("other", f"x{value[1:]}"))
        if value != value.swapcase():
            yield "case", value.swapcase()
        if value[:1] in {"[", "{"}:
            yield "space", f"{value[0]} {value[1:]}"
    elif isinstance(value, bytes):
        yield from (("NUL", value + b"\0"), ("shorter", value[:-1]), ("empty", b""))
        for place in {0, len(value) // 2, len(value) - 1} if value else ():
            yield "bit", value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :]
    elif isinstance(value, int):
        far = value + 100_000  # where no other row is
        yield from (("far", far), ("more", value + 1), ("less", value - 1), ("zero", 0))
    else:
        yield from (("more", value + 1.0), ("slightly", value * (1 + 1e-15) or -0.0))


def another(value: Any) -> Any:
    """Return a value of the same type that is not there yet."""
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, bytes):
        return value + b"x"
    return value if value is None else value + 100_000


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


def _where(table: Table) -> str:
    return " AND ".join(f"{name} = ?" for name in table.key)


def _set(target: Target, *, table: Table, row: Row, values: Row) -> None:
    if all(value == row[name] and type(value) is type(row[name]) for name, value in values.items()):
        raise RefusedError
    to = ", ".join(f"{name} = ?" for name in values)
    key = [row[name] for name in table.key]
    statement = f"UPDATE {table.name} SET {to} WHERE {_where(table)}"
    with _sqlite_type_error(), target.unguarded():
        if not target.run(statement, *values.values(), *key):
            raise RefusedError


def _swap(target: Target, *, table: Table, one: Row, other: Row, columns: list[str]) -> None:
    with target.unguarded():
        if set(columns) & set(table.key):
            # A key cannot be in two rows: one of them goes, and comes back with the other's.
            _run_delete(target, table, one)
            _run_delete(target, table, other)
            for row, its in ((one, other), (other, one)):
                _run_insert(target, table, {**row, **{name: its[name] for name in columns}})
            return
        to = ", ".join(f"{name} = ?" for name in columns)
        for row, its in ((one, other), (other, one)):
            key = [row[name] for name in table.key]
            values = [its[name] for name in columns]
            if columns:
                target.run(f"UPDATE {table.name} SET {to} WHERE {_where(table)}", *values, *key)


def _delete(target: Target, *, table: Table, row: Row) -> None:
    with target.unguarded():
        if not _run_delete(target, table, row):
            raise RefusedError


def _insert(target: Target, *, table: Table, row: Row) -> None:
    with target.unguarded():
        _run_insert(target, table, row)


def _run_delete(target: Target, table: Table, row: Row) -> int:
    return target.run(
        f"DELETE FROM {table.name} WHERE {_where(table)}", *(row[x] for x in table.key)
    )


def _run_insert(target: Target, table: Table, row: Row) -> None:
    marks = ", ".join("?" * len(table.columns))
    values = [row[name] for name in table.columns]
    target.run(f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({marks})", *values)


def _twice(target: Target, *, table: Table, row: Row) -> None:
    """Have a row twice, in a table that lost whatever forbids it."""
    with target.unguarded():
        _without_constraints(target, table)
        _run_insert(target, table, row)


def _without_constraints(target: Target, table: Table) -> bool:
    """Remove whatever forbids rows; return whether there was anything."""
    if isinstance(target, PostgresTarget):
        found = target.rows(
            "SELECT conname FROM pg_constraint WHERE conrelid = ?::regclass "
            "AND contype IN ('p', 'u')",
            table.name,
        )
        for (name,) in found:
            target.run(f"ALTER TABLE {table.name} DROP CONSTRAINT {name}")
        return bool(found)
    indexes = target.rows(
        "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?",
        table.name,
    )
    target.run(f"CREATE TABLE bare AS SELECT * FROM {table.name}")
    target.run(f"DROP TABLE {table.name}")
    target.run(f"ALTER TABLE bare RENAME TO {table.name}")
    for (sql,) in indexes:
        target.run(sql.replace("UNIQUE ", ""))
    return True


def _empty(target: Target, *, table: Table) -> None:
    with target.unguarded():
        if not target.run(f"DELETE FROM {table.name}"):
            raise RefusedError


@contextmanager
def _sqlite_type_error() -> Generator[None]:
    import contextlib

    errors: tuple[type[Exception], ...] = (sqlite3.InterfaceError,)
    with contextlib.suppress(ImportError):
        import psycopg

        errors = (*errors, psycopg.ProgrammingError)
    try:
        yield
    except errors as exc:
        raise RefusedError from exc


# -- catalogue -------------------------------------------------------------------------------------


def catalogue_attacks(target: Target) -> Iterator[Attack]:
    """Yield what can be done to definitions."""
    if isinstance(target, PostgresTarget):
        yield from _of_postgres(target)
    elif isinstance(target, SqliteTarget):
        yield from _of_sqlite(target)


def _statements(name: str, target: str, *statements: str) -> Attack:
    return Attack(name, target, partial(_run_all, statements=statements))


def _run_all(target: Target, *, statements: Sequence[str]) -> None:
    for each in statements:
        target.run(each)


def _others(target: Target, table: str, columns: list[str], sql: str) -> str:
    """Return a condition that leaves out one row that an index has."""
    where = sql.partition(" WHERE ")[2] or "true"
    found = target.rows(f"SELECT max({columns[0]}) FROM {table} WHERE {where}")
    value = found[0][0]
    if isinstance(value, bytes):
        is_sqlite = isinstance(target, SqliteTarget)
        literal = f"X'{value.hex()}'" if is_sqlite else f"'\\x{value.hex()}'::bytea"
    else:
        literal = f"'{value}'" if isinstance(value, str) else str(value)
    return f"({where}) AND {columns[0]} < {literal}"


def _partly(target: Target, table: str, columns: list[str], sql: str) -> str:
    """Return the definition of an index with a condition that leaves rows out."""
    return f"{sql.partition(' WHERE ')[0]} WHERE {_others(target, table, columns, sql)}"


def _of_index(name: str, table: str, columns: Sequence[str], partly: str) -> Iterator[Attack]:
    drop, other = f"DROP INDEX {name}", f"CREATE INDEX {name} ON {table}({columns[-1]} DESC)"
    yield _statements("index dropped", name, drop)
    yield _statements("index partial", name, drop, partly)
    yield _statements("index of another column", name, drop, other)


def _of_sqlite(target: SqliteTarget) -> Iterator[Attack]:
    for name, table, sql in target.rows(
        "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    ):
        columns = [each[2] for each in target.rows(f"PRAGMA index_info({name})")]
        partly = _partly(target, table, columns, " ".join(sql.split()))
        yield from _of_index(name, table, columns, partly)
        yield Attack(
            "index forged", name, partial(_forged_index, name=name, partly=partly, sql=sql)
        )
    for name, table, sql in target.rows(
        "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'"
    ):
        drop = f"DROP TRIGGER {name}"
        idle = " ".join(sql.split()).partition("BEGIN")[0] + "BEGIN SELECT 1; END"
        yield _statements("trigger dropped", name, drop)
        yield _statements("trigger redefined", name, drop, idle)
        # What a literal holds is no comment.
        hollow = sql.replace(" is append-only'", " --') WHERE 0; SELECT ('\n is append-only'")
        yield _statements("trigger hollowed out", name, drop, hollow)
        yield _statements("trigger in another case", name, drop, sql.replace("append", "APPEND"))
        yield Attack("trigger called statistics", table, partial(_as_statistics, table=table))
    for table in target.tables:
        yield _statements("column added", table.name, f"ALTER TABLE {table.name} ADD COLUMN x TEXT")
        yield _statements(
            "trigger added",
            table.name,
            f"CREATE TRIGGER sly AFTER INSERT ON {table.name} BEGIN SELECT 1; END",
        )
        yield Attack("constraints removed", table.name, partial(_bare, table=table))
        yield _statements(
            "view in its place",
            table.name,
            "PRAGMA legacy_alter_table = ON",
            f"ALTER TABLE {table.name} RENAME TO hidden",
            f"CREATE VIEW {table.name} AS SELECT * FROM hidden",
        )
        yield from _gone(table)
    yield _statements("table added", "audit_other", "CREATE TABLE audit_other(x)")
    yield _statements("version changed", "user_version", "PRAGMA user_version = 2")
    yield _statements("version changed", "user_version", "PRAGMA user_version = 0")
    yield _statements("version changed", "user_version", "PRAGMA user_version = 99")
    yield _statements("id changed", "application_id", "PRAGMA application_id = 7")


def _gone(table: Table) -> Iterator[Attack]:
    """Yield what most of our own queries fail for."""
    name, column = table.name, table.columns[-1]
    yield _statements("table dropped", name, f"DROP TABLE {name}")
    yield _statements("table renamed", name, f"ALTER TABLE {name} RENAME TO hidden")
    if column not in table.key:
        rename = f"ALTER TABLE {name} RENAME COLUMN {column} TO x"
        yield _statements("column renamed", f"{name}.{column}", rename)


def _bare(target: Target, *, table: Table) -> None:
    with target.unguarded():
        if not _without_constraints(target, table):
            raise RefusedError


def _forged_index(target: Target, *, name: str, partly: str, sql: str) -> None:
    """Leave entries out of an index whose definition is as it should be."""
    target.run(f"DROP INDEX {name}")
    target.run(partly)
    target.run("PRAGMA writable_schema = ON")
    target.run("UPDATE sqlite_master SET sql = ? WHERE name = ?", sql, name)
    target.run("PRAGMA writable_schema = RESET")


def _as_statistics(target: Target, *, table: str) -> None:
    """Have a trigger go by the name of what ANALYZE makes."""
    target.run(f"CREATE TRIGGER sly AFTER INSERT ON {table} BEGIN SELECT 1; END")
    target.run("PRAGMA writable_schema = ON")
    target.run(
        "UPDATE sqlite_master SET name = 'sqlite_stat1', "
        "sql = replace(sql, 'sly', 'sqlite_stat1') WHERE name = 'sly'"
    )
    target.run("PRAGMA writable_schema = RESET")


def _of_postgres(target: PostgresTarget) -> Iterator[Attack]:
    for name, table, sql, columns, is_constraint in target.rows(_PG_INDEXES):
        if not target.rows(f"SELECT 1 FROM {table} LIMIT 1"):
            continue  # an index of nothing leaves nothing out
        partly = _partly(target, table, columns, sql)
        if not is_constraint:
            yield from _of_index(name, table, columns, partly)
            yield Attack(
                "index forged", name, partial(_forged_pg_index, name=name, partly=partly, sql=sql)
            )
        yield _statements(
            "index disabled",
            name,
            f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{name}'::regclass",
        )
    for name, table, function in target.rows(_PG_TRIGGERS):
        yield _statements("trigger dropped", name, f"DROP TRIGGER {name} ON {table}")
        yield _statements("trigger disabled", name, f"ALTER TABLE {table} DISABLE TRIGGER {name}")
        yield from _of_pg_trigger(name, table, function)
        yield _statements(
            "trigger redefined",
            name,
            f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RETURN COALESCE(NEW, OLD); END $$",
        )
    yield from _of_pg_names()
    for table in target.tables:
        name = table.name
        for catalog in ("pg_trigger", "pg_class"):
            yield _statements(
                f"trigger added, and {catalog} shadowed",
                name,
                _SPY,
                f"CREATE TRIGGER sly BEFORE DELETE ON {name} FOR EACH ROW EXECUTE FUNCTION sly()",
                "CREATE SCHEMA evil",
                f"CREATE VIEW evil.{catalog} AS SELECT * FROM pg_catalog.{catalog} WHERE false",
                _set_of_database("search_path = evil, pg_catalog, public"),
            )
        yield _statements(
            "trigger added as one of the server's own",
            name,
            _SPY,
            f"CREATE TRIGGER sly BEFORE DELETE ON {name} FOR EACH ROW EXECUTE FUNCTION sly()",
            "UPDATE pg_trigger SET tgisinternal = true WHERE tgname = 'sly'",
        )
        yield _statements("policy added", name, f"CREATE POLICY sly ON {name} USING (false)")
        yield _statements("made forgetful", name, f"ALTER TABLE {name} SET UNLOGGED")
        yield _statements("column added", name, f"ALTER TABLE {name} ADD COLUMN x text")
        yield Attack("constraints removed", name, partial(_bare, table=table))
        yield _statements(
            "trigger added",
            name,
            "CREATE FUNCTION sly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
            f"CREATE TRIGGER sly BEFORE INSERT ON {name} FOR EACH ROW EXECUTE FUNCTION sly()",
        )
        yield _statements(
            "rule added", name, f"CREATE RULE sly AS ON INSERT TO {name} DO INSTEAD NOTHING"
        )
        yield _statements(
            "view in its place",
            name,
            f"ALTER TABLE {name} RENAME TO hidden",
            f"CREATE VIEW {name} AS SELECT * FROM hidden",
        )
        yield _statements("rows hidden", name, f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        yield _statements("heir added", name, f"CREATE TABLE heir() INHERITS ({name})")
        yield from _gone(table)
        yield from _calling_functions(table)
        column = table.columns[0]
        for (required,) in target.rows(_PG_REQUIRED, name):
            drop = f"ALTER TABLE {name} ALTER COLUMN {required} DROP NOT NULL"
            yield _statements("NOT NULL removed", f"{name}.{required}", drop)
        yield _statements(
            "default added",
            f"{name}.{column}",
            f"ALTER TABLE {name} ALTER COLUMN {column} SET DEFAULT '1'",
        )


def _calling_functions(table: Table) -> Iterator[Attack]:
    """Yield what has the server call somebody's function with what is in a row."""
    name, column = table.name, table.columns[0]
    function = (
        "CREATE FUNCTION sly(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS "
        "$$ BEGIN RETURN $1; END $$"
    )
    call = f"public.sly({column}::text)"
    for kind, statement in {
        "index": f"CREATE INDEX sly ON {name}(({call}))",
        "statistics": f"CREATE STATISTICS sly ON ({call}) FROM {name}",
        "constraint": f"ALTER TABLE {name} ADD CHECK ({call} <> '')",
        "index for texts": f"CREATE INDEX sly ON {name} USING gin (to_tsvector('simple', {call}))",
    }.items():
        yield _statements(f"{kind} that calls a function", name, function, statement)
    yield _statements(
        "rows hidden from the owner too",
        name,
        f"CREATE POLICY sly ON {name} USING (false)",
        f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY",
    )
    yield _statements(
        "view that is kept in its place",
        name,
        f"ALTER TABLE {name} RENAME TO hidden",
        f"CREATE MATERIALIZED VIEW {name} AS SELECT * FROM hidden",
    )


_SPY = "CREATE FUNCTION sly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$"


def _set_of_database(setting: str) -> str:
    return (
        f"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET {setting}', current_database()); END $$"
    )


def _of_pg_trigger(name: str, table: str, function: str) -> Iterator[Attack]:
    for setting in ("SET search_path = pg_temp", "SECURITY DEFINER", "LEAKPROOF", "STABLE"):
        yield _statements(f"function: {setting}", name, f"ALTER FUNCTION {function}() {setting}")
    yield _statements(
        "function: of another language",
        name,
        "CREATE LANGUAGE sly HANDLER plpgsql_call_handler",
        f"UPDATE pg_proc SET prolang = (SELECT oid FROM pg_language WHERE lanname = 'sly') "
        f"WHERE proname = '{function}'",
    )
    yield _statements(
        "function: of another schema",
        name,
        "CREATE SCHEMA evil",
        f"ALTER FUNCTION {function}() SET SCHEMA evil",
    )
    yield _statements(
        "function: a literal changed",
        name,
        f"UPDATE pg_proc SET prosrc = replace(prosrc, 'append-only', 'APPEND-ONLY') "
        f"WHERE proname = '{function}'",
    )
    enable = f"ALTER TABLE {table} ENABLE"
    yield _statements("trigger of replicas alone", name, f"{enable} REPLICA TRIGGER {name}")
    how = "BEFORE UPDATE OF" if "update" in name else None
    if how:
        yield _statements(
            "trigger of one column",
            name,
            f"DROP TRIGGER {name} ON {table}",
            f"CREATE TRIGGER {name} {how} method ON {table} FOR EACH ROW "
            f"EXECUTE FUNCTION {function}()",
        )


def _of_pg_names() -> Iterator[Attack]:
    """Yield what has a name mean something else to whoever does not say whose it is."""
    body = "LANGUAGE sql AS 'SELECT 0::bigint'"
    for call in ("hashtextextended(text, integer)", "length(text)", "convert_from(text, text)"):
        yield _statements(
            "function shadowed", call, f"CREATE FUNCTION {call} RETURNS bigint {body}"
        )
    yield _statements(
        "function shadowed",
        "count(text)",
        "CREATE AGGREGATE count(text) (SFUNC = textcat, STYPE = text)",
    )
    yield _statements(
        "operator shadowed",
        "json #>> text",
        "CREATE FUNCTION sly(json, text) RETURNS text LANGUAGE sql AS 'SELECT $2'",
        "CREATE OPERATOR #>> (FUNCTION = sly, LEFTARG = json, RIGHTARG = text)",
    )
    # Whoever owns an extension may have it own what was there before as well.
    yield _statements(
        "operator shadowed by an extension's",
        "bigint >= numeric",
        "CREATE FUNCTION sly(bigint, numeric) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE OPERATOR >= (FUNCTION = sly, LEFTARG = bigint, RIGHTARG = numeric)",
        "ALTER EXTENSION plpgsql ADD FUNCTION sly(bigint, numeric)",
        "ALTER EXTENSION plpgsql ADD OPERATOR >= (bigint, numeric)",
    )
    yield _statements("cast added", "text", "CREATE CAST (text AS bigint) WITH INOUT AS IMPLICIT")
    yield _statements(
        "triggers kept from firing", "role", _set_of_database("session_replication_role = replica")
    )
    yield _statements(
        "view before it in the path",
        "audit_log",
        "CREATE SCHEMA evil",
        "CREATE VIEW evil.audit_log AS SELECT * FROM public.audit_log",
        _set_of_database("search_path = evil, public"),
    )
    yield _statements(
        "index of a literal in another case",
        "audit_event_writer_0",
        "DROP INDEX audit_event_writer_0",
        "CREATE UNIQUE INDEX audit_event_writer_0 ON audit_event_0(writer_id, writer_seq) "
        "WHERE kind = 'Operation'",
    )


def _forged_pg_index(target: Target, *, name: str, partly: str, sql: str) -> None:
    """Leave entries out of an index whose definition is as it should be."""
    target.run(f"DROP INDEX {name}")
    target.run(partly)
    target.run(f"ALTER INDEX {name} RENAME TO honest")
    target.run(sql)
    target.run(
        "UPDATE pg_index SET indpred = "
        "(SELECT indpred FROM pg_index WHERE indexrelid = ?::regclass) "
        "WHERE indexrelid = 'honest'::regclass",
        name,
    )
    target.run(f"DROP INDEX {name}")
    target.run(f"ALTER INDEX honest RENAME TO {name}")


_PG_INDEXES = """
    SELECT i.indexrelid::regclass::text, i.indrelid::regclass::text, pg_get_indexdef(i.indexrelid),
      ARRAY(SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY k(num, place)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num ORDER BY k.place),
      EXISTS(SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public'
"""
_PG_REQUIRED = """
    SELECT a.attname::text FROM pg_attribute a
    WHERE a.attrelid = ?::regclass AND a.attnum > 0 AND a.attnotnull AND NOT EXISTS(
      SELECT 1 FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary
        AND a.attnum = ANY(i.indkey)) LIMIT 1
"""
_PG_TRIGGERS = """
    SELECT t.tgname::text, t.tgrelid::regclass::text, p.proname::text
    FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE NOT t.tgisinternal
"""


def is_of_definitions(attack: Attack) -> bool:
    """Return whether it is an attack on definitions, and not on rows."""
    return attack.make.func not in _OF_ROWS


# -- making them -----------------------------------------------------------------------------------


def attacks_on(target: Target, *, each: int) -> list[Attack]:
    """Return all attacks on a log; *each*: how many rows of each table."""
    return [*row_attacks(target, each=each), *catalogue_attacks(target)]


def one_of_each(attacks: Sequence[Attack], *, targets: bool) -> list[Attack]:
    """Return one of each kind, and, if wanted, one on each target."""
    chosen = {attack.name: attack for attack in attacks}
    # Most columns are never NULL.
    others = [attack for attack in reversed(attacks) if attack.name != "changed: nothing"]
    on_each = {attack.target: attack for attack in others} if targets else {}
    return [*chosen.values(), *on_each.values()]


def attacked_files(
    base: Path, attacks: Sequence[Attack], to: Path
) -> Iterator[tuple[Attack, Path]]:
    """Yield every attack that could be made on a copy of the log *base*, and the copy."""
    for attack in attacks:
        for end in ("", "-wal", "-shm"):
            to.with_name(to.name + end).unlink(missing_ok=True)
        shutil.copyfile(base, to)
        with closing(SqliteTarget(to)) as target:
            try:
                attack.make(target)
            except RefusedError:
                continue
        yield attack, to


def attacked_databases(
    server: str, base: str, attacks: Sequence[Attack]
) -> Iterator[tuple[Attack, str]]:
    """Yield every attack that could be made on a copy of the log *base*, and the copy's URL."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    name = conninfo_to_dict(base)["dbname"]
    copy = base.replace(f"/{name}?", "/attacked?")
    with psycopg.connect(server, autocommit=True) as connection:
        saved: dict[str, list[Any]] = {}
        for attack in attacks:
            is_of_rows = not is_of_definitions(attack)
            if not saved:
                connection.execute("DROP DATABASE IF EXISTS attacked")
                connection.execute(f"CREATE DATABASE attacked TEMPLATE {name}")
            with closing(PostgresTarget(copy)) as target:
                saved = saved or target.saved()
                try:
                    attack.make(target)
                except RefusedError:
                    continue
            yield attack, copy
            if is_of_rows:
                table = attack.target.partition(".")[0]
                with closing(PostgresTarget(copy)) as target:
                    target.restore(table, saved[table])
            else:
                saved = {}
        connection.execute("DROP DATABASE IF EXISTS attacked")


_OF_ROWS = {_set, _swap, _delete, _insert, _empty}
